"""The right to be writable ends when the server is demoted, before the lease does."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from recipes.memory_cluster import Cluster, MemoryResource

import zkelect
from zkelect.recipes.clock import now
from zkelect.recipes.member import Role
from zkelect.recipes.office import Office

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recipes.memory_cluster import Server

MARGIN = 0.1
WITHIN = 30.0


class Leadership:
    """One whose lease is renewed, or not any more: then each look finds less of it.

    :ivar left: what the last look found.
    """

    token, reason = "p1", None

    def __init__(self) -> None:
        self.deadline = now() + 100.0
        self.renewed = False
        self.left = 9 * MARGIN
        self._next = [3 * MARGIN, 2 * MARGIN, MARGIN / 2]

    def remaining(self) -> float:
        if not self.renewed:
            self.left = self._next.pop(0) if self._next else 0.0
        return self.left


def until(condition: Callable[[], bool]) -> None:
    deadline = now() + WITHIN
    while not condition():
        assert now() < deadline
        time.sleep(0.01)


@attrs.define
class Session:
    """What an office looks at of its session."""

    ended: bool = False


@attrs.define(kw_only=True)
class Stage:
    """A primary that has the right.

    :ivar resigned: set when it is given up. :ivar then: what the server was at that instant.
    """

    server: Server
    resource: MemoryResource
    office: Office
    leadership: Leadership
    resigned: threading.Event
    then: list[Role]

    def until_resigned(self) -> None:
        assert self.resigned.wait(WITHIN)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    cluster, leadership = Cluster("a", "b"), Leadership()
    server, resource = cluster.servers["a"], MemoryResource(cluster, "a")
    resigned, then = threading.Event(), list[Role]()

    class Election:
        """One in which we are elected at once."""

        def __init__(self, *_: object, **__: object) -> None: ...

        @contextmanager
        def campaign(self, timeout: float) -> Iterator[Leadership]:
            yield leadership
            then.append(server.role)
            resigned.set()

    monkeypatch.setattr(zkelect, "Election", Election)
    session: Any = Session()
    office = Office(session, "/primary", "a", resource, margin=MARGIN)
    yield Stage(
        server=server,
        resource=resource,
        office=office,
        leadership=leadership,
        resigned=resigned,
        then=then,
    )
    office.leave()


@pytest.fixture
def on_demotion(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], None]], None]:
    """Have something done at each demotion, before it."""

    def put(action: Callable[[], None]) -> None:
        monkeypatch.setattr(
            stage.resource, "before", lambda act: action() if act == "demote" else None
        )

    return put


def test_h81_a_primary_whose_lease_is_not_renewed_is_demoted_before_it_ends(
    stage: Stage, on_demotion: Callable[..., None]
) -> None:
    left: list[float] = []
    on_demotion(lambda: left.append(stage.leadership.left))
    stage.office.stand()
    stage.until_resigned()
    assert left[0] > 0
    assert stage.then == [Role.DEMOTED]


def test_h81_until_the_demotion_has_worked_the_right_is_not_given_up(
    stage: Stage, on_demotion: Callable[..., None]
) -> None:
    """So nobody else is granted it over a server that takes writes still."""
    tries: list[bool] = []

    def fail_twice() -> None:
        tries.append(stage.resigned.is_set())
        if len(tries) <= 2:
            raise RuntimeError("the server does not stop")

    on_demotion(fail_twice)
    stage.office.stand()
    stage.until_resigned()
    assert (tries[:3], stage.then) == ([False] * 3, [Role.DEMOTED])


def test_h81_what_was_under_way_when_the_lease_ended_is_undone(stage: Stage) -> None:
    """A promotion that began in time, and ends after the server was demoted."""
    stage.leadership.renewed = True
    stage.office.stand()
    until(lambda: stage.office.token == "p1")
    with stage.office.using():
        stage.leadership.renewed = False
        until(lambda: stage.server.role is Role.DEMOTED)
        stage.server.role = Role.PRIMARY
    stage.until_resigned()
    assert stage.then == [Role.DEMOTED]


def test_the_dead_man_is_armed_within_the_lease_and_disarmed_when_nothing_takes_writes(
    stage: Stage,
) -> None:
    stage.leadership.renewed = True
    stage.office.stand()
    until(lambda: stage.office.token == "p1")
    armed = stage.server.armed
    assert armed is not None
    assert stage.leadership.deadline - MARGIN < armed < stage.leadership.deadline
    stage.office.leave()
    assert (stage.server.armed, stage.then) == (None, [Role.DEMOTED])


# --- where clients are led -------------------------------------------------------------------


def test_h81_clients_are_led_here_from_the_opening_until_anything_is_done_about_closing(
    stage: Stage, on_demotion: Callable[..., None]
) -> None:
    stage.leadership.renewed = True
    stage.office.stand()
    until(lambda: stage.office.token == "p1")
    assert stage.office.serving is None  # it may be writable, and is not open yet
    held = stage.office.leadership
    assert held is not None
    stage.office.opened(held)
    assert stage.office.serving is held
    seen: list[object] = []
    on_demotion(lambda: seen.append(stage.office.serving))
    stage.office.leave()
    assert seen == [None]


def test_h81_clients_are_led_here_no_more_when_the_lease_comes_to_its_end(stage: Stage) -> None:
    """Also when nobody has noticed: who asks sees what is left."""
    stage.leadership.renewed = True
    stage.office.stand()
    until(lambda: stage.office.token == "p1")
    held = stage.office.leadership
    assert held is not None
    stage.office.opened(held)
    stage.leadership.left = MARGIN
    assert stage.office.serving is None
