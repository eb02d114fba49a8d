"""An agent that ZooKeeper does not answer goes on, and takes that for nobody's failure."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import attrs
import pytest
from recipes.memory_cluster import Cluster, MemoryResource

import zkelect
from zkelect.recipes import agent
from zkelect.recipes.choice import Policy
from zkelect.recipes.clock import now
from zkelect.recipes.member import Done, Heartbeat, Member, Observed, Outcome, Role
from zkelect.recipes.notes import decode
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.resource import NeedsRebuild

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.recipes.position import Position

FREEZE = Page(
    phase=Phase.FREEZE,
    serial=7,
    token="t",
    coordinator="c",
    primary="a",
    system="s",
    members=tuple(MemoryResource(Cluster(*"abc"), name).member for name in "abc"),
)
WITHIN = 30.0


class Board:
    """One that is no ZooKeeper: each failure comes once.

    :param page: it stays as it is. :param then: another one from the fourth turn on.
    """

    path, coordinator, primary = "/cluster", "/cluster/coordinator", "/cluster/primary"

    def __init__(
        self, stop: threading.Event, page: Page, *failing: str, then: Page | None = None
    ) -> None:
        self._stop = stop
        self._page = page
        self._then = then
        self._failing = set(failing)
        self.turns = 0
        self.told: list[Heartbeat] = []

    def answer(self, what: str) -> None:
        if what in self._failing:
            self._failing.remove(what)
            raise zkelect.ConnectFailed("here:1", 1.0, {})

    def prepare(self) -> None: ...

    def confirm(self, leadership: Term, version: int) -> None: ...

    def page(self) -> tuple[Page | None, int]:
        return self._page, 4

    def page_of(self, znode: object) -> Page | None:
        return self._page

    def pages(self) -> Self:
        return self

    def beats(self) -> tuple[Heartbeat, ...]:
        return ()

    def register(self, beat: Heartbeat) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    # --- what is followed, and what is registered ------------------------------------------------

    @property
    def znode(self) -> None:
        self.answer("read")

    def wait(self, timeout: float) -> None:
        self.turns += 1
        if self.turns == 3 and self._then is not None:
            self._page = self._then
        if self.turns == 5:
            self._stop.set()
        self.answer("rest")

    def update(self, data: bytes) -> None:
        self.answer("tell")
        self.told.append(decode(Heartbeat, data))


class Election:
    """One in which nobody is elected."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def run_forever(self, body: Callable[..., None], *, stop: threading.Event) -> None:
        stop.wait(WITHIN)


@attrs.frozen
class Session:
    """What an agent looks at of its session."""

    timeout: float = 4.0


class Office:
    """The right to be writable, which b has."""

    leadership, token, busy = "a leadership", "p1", True

    def __init__(self, *_: object, **__: object) -> None: ...

    @contextmanager
    def using(self) -> Iterator[Term]:
        yield Term()

    def deadline(self, leadership: Term) -> float:
        return now() + WITHIN

    def opened(self, leadership: Term) -> None: ...

    def closing(self) -> None: ...

    def leave(self) -> None: ...


class Term:
    """A leadership that lasts."""

    token = "p1"

    def check(self) -> str:
        return self.token


class Gated(MemoryResource):
    """A server that looks as one that was demoted until it lets writers in, as MariaDB does."""

    def observe(self) -> Observed:
        seen = super().observe()
        return seen if self._server.open else attrs.evolve(seen, role=Role.DEMOTED)


class Astray(MemoryResource):
    """A server with a history of its own."""

    why = "another history"

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        raise NeedsRebuild(self.why)


class AstrayOnce(Astray):
    """One that was rebuilt when it is told to follow again."""

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        if "follow" in self.acts:
            return
        self.acts.append("follow")
        super().follow(primary, position, deadline)


class Synchrony:
    """Whom the primary waits for is kept on the board."""

    def __init__(self, board: Board, *_: object) -> None:
        self._board = board

    def begin(self, *_: object) -> None: ...

    def keep(self, *_: object) -> None:
        self._board.answer("keep")


def run(
    monkeypatch: pytest.MonkeyPatch,
    *failing: str,
    page: Page = FREEZE,
    then: Page | None = None,
    kind: type[MemoryResource] = MemoryResource,
) -> tuple[Board, MemoryResource]:
    """Let the agent of b take five turns under a page; without another one it is to freeze."""
    stop = threading.Event()
    board = Board(stop, page, *failing, then=then)
    monkeypatch.setattr(agent, "Board", lambda session, path: board)
    monkeypatch.setattr(zkelect, "Election", Election)
    cluster = Cluster(str(page.primary), *"bc")
    cluster.servers[str(page.primary)].open = page.phase is not Phase.OPEN
    resource = kind(cluster, "b")
    monkeypatch.setattr(resource, "before", board.answer)
    session: Any = Session()
    agent.Agent(session, "/cluster", resource, policy=Policy()).run(stop)
    return board, resource


def outcomes(board: Board) -> set[Outcome | None]:
    """Return what was told of the duty, once it was told."""
    answers: list[Done | None] = [beat.answered(FREEZE.serial) for beat in board.told]
    return {None if done is None else done.outcome for done in answers}


def test_a_duty_is_done_once_and_told_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    board, resource = run(monkeypatch)
    assert resource.acts == ["freeze"]
    assert outcomes(board) == {Outcome.DONE}
    assert len(board.told) >= board.turns == 5


@pytest.mark.parametrize("what", ["read", "tell", "rest"])
def test_an_agent_that_zookeeper_does_not_answer_tries_again(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its server may be the primary: it stays one as long as the lease, and nobody is needed."""
    board, resource = run(monkeypatch, what)
    assert resource.acts == ["freeze"]
    assert outcomes(board) == {Outcome.DONE}
    assert board.turns == 5


def test_a_duty_in_which_zookeeper_does_not_answer_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is done again; a coordinator would take a failure for the server's."""
    board, resource = run(monkeypatch, "freeze")
    assert resource.acts == ["freeze"]
    assert outcomes(board) == {Outcome.DONE}
    assert board.turns == 5


def test_a_primary_that_cannot_record_who_is_in_step_blames_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ZooKeeper did not answer: nothing of the server's is in the way, and it is done again."""
    monkeypatch.setattr(agent, "Office", Office)
    monkeypatch.setattr(agent, "Synchrony", Synchrony)
    serving = attrs.evolve(FREEZE, phase=Phase.STEADY, primary="b", primary_token="p1")
    board, resource = run(monkeypatch, "keep", page=serving)
    assert {beat.trouble for beat in board.told} == {""}
    assert board.turns == 5
    assert resource.acts == ["demote"]  # by the agent as it ends


def test_h81_who_has_let_writers_in_is_told_as_one_that_takes_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If that was the agent's last word, a primary would be missing that is there."""
    monkeypatch.setattr(agent, "Office", Office)
    monkeypatch.setattr(agent, "Synchrony", Synchrony)
    opening = attrs.evolve(
        FREEZE, phase=Phase.OPEN, primary="b", winner="b", primary_token=Term.token
    )
    board, _ = run(monkeypatch, page=opening, kind=Gated)
    done = [beat for beat in board.told if beat.answered(opening.serial) is not None]
    assert {beat.observed.role for beat in done} == {Role.PRIMARY}


def test_h82_what_needs_a_rebuild_needs_it_under_the_next_page_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The winner is chosen under another page than that under which a server was refused."""
    following = attrs.evolve(FREEZE, phase=Phase.STEADY, serial=6, primary_token="p1")
    board, _ = run(monkeypatch, page=following, then=FREEZE, kind=Astray)
    frozen = [beat for beat in board.told if beat.answered(FREEZE.serial) is not None]
    assert {beat.observed.rebuild for beat in frozen} == {Astray.why}


def test_who_can_follow_again_needs_no_rebuild_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    following = attrs.evolve(FREEZE, phase=Phase.STEADY, serial=6, primary_token="p1")
    again = attrs.evolve(following, serial=7)
    board, _ = run(monkeypatch, page=following, then=again, kind=AstrayOnce)
    followed = [beat for beat in board.told if beat.answered(again.serial) is not None]
    assert followed[-1].observed.rebuild == ""


def test_an_agent_that_cannot_coordinate_any_more_ends_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever started it starts it again, as an init system does that is told of a failure."""

    def refuse(*_: object, **__: object) -> None:
        raise zkelect.AuthenticationFailed("here:1", "digest")

    monkeypatch.setattr(Election, "run_forever", refuse)
    with pytest.raises(zkelect.AuthenticationFailed):
        run(monkeypatch)
