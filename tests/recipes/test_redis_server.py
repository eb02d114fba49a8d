"""A Redis server whose data are less than they were never leads, and hands over only what is there.

There is no server: what one says is given, and what it is told is noted.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from recipes.redis_info import REPLICA, A, state
from redis import exceptions

from zkelect.recipes.clock import now
from zkelect.recipes.member import Member, Role
from zkelect.recipes.position import Branch, Position
from zkelect.recipes.redis import demoting, process, promoting, resource
from zkelect.recipes.redis.asking import NoAnswer
from zkelect.recipes.redis.history import Kept, Record
from zkelect.recipes.redis.place import NOWHERE, Place
from zkelect.recipes.redis.promoting import Incomplete
from zkelect.recipes.redis.resource import RedisServer
from zkelect.recipes.redis.state import Follower, State
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

US: dict[str, Any] = {"process_id": os.getpid()}
DEMOTED = {**REPLICA, **US, "master_host": NOWHERE[0], "master_port": NOWHERE[1]}
MASTER, RUN, ANOTHER = state(**US), "d" * 40, "e" * 40


class Client:
    """A connection that notes what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __getattr__(self, command: str) -> Any:
        return lambda *words, **_: self.said.append(" ".join(map(str, (command, *words))))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(url="redis://127.0.0.1:6379/0", record=tmp_path / "record")


def soon() -> float:
    return now() + 30.0


def answer(monkeypatch: pytest.MonkeyPatch, module: Any, said: State) -> Client:
    """Have the module's server say that, whoever asks; return what notes what it is told."""
    client = Client()

    @contextmanager
    def connect(url: str, deadline: float) -> Iterator[Client]:
        yield client

    monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setattr(module, "look", lambda _: said, raising=False)
    monkeypatch.setattr(module, "read_state", lambda *_: said, raising=False)
    return client


def server_of(place: Place, reigned: str = "") -> RedisServer:
    Record(place.record).keep(Kept(reigned=reigned))
    return RedisServer(Member(name="a", address="127.0.0.1:6379"), place, domain="d")


# --- started anew, or with a part of its data ---------------------------------------------------


@pytest.mark.parametrize("told", [{"loading": 1}, {"slave_repl_offset": 0}])
def test_h83_without_all_of_its_data_it_is_no_candidate_and_has_no_position(
    monkeypatch: pytest.MonkeyPatch, place: Place, told: dict[str, Any]
) -> None:
    answer(monkeypatch, resource, state(DEMOTED, **told))
    seen = server_of(place).observe()
    assert (seen.role, seen.healthy, seen.position) == (Role.DEMOTED, False, None)
    assert "its data" in seen.detail or "loading" in seen.detail


@pytest.mark.parametrize("told", [{"loading": 1}, {"slave_repl_offset": 0}])
def test_h83_it_is_not_told_to_be_the_primary_either(
    monkeypatch: pytest.MonkeyPatch, place: Place, told: dict[str, Any]
) -> None:
    client = answer(monkeypatch, promoting, state(DEMOTED, **told))
    with pytest.raises(Incomplete):
        promoting.become_primary(place, Record(place.record), soon())
    assert client.said == []


def test_h83_a_primary_that_was_started_anew_is_not_well(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """It has what was on the disk, which may be nothing; whole it is all the same."""
    answer(monkeypatch, resource, state(DEMOTED))
    assert server_of(place, RUN).observe().healthy
    seen = server_of(place, ANOTHER).observe()
    assert not seen.healthy
    assert "started anew since it was the primary" in seen.detail


def test_h83_once_it_was_demoted_on_order_it_counts_by_what_it_has(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    answer(monkeypatch, resource, state(DEMOTED))
    server = server_of(place, ANOTHER)
    where = server.demote(planned=False, deadline=soon())
    assert where == Position((Branch(A),), 100)
    assert server.observe().healthy


def test_h83_what_was_started_anew_is_no_target_of_a_planned_change(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """The others have more, and would be measured by it."""
    answer(monkeypatch, resource, state(DEMOTED))
    server = server_of(place, ANOTHER)
    with pytest.raises(Incomplete, match="started anew"):
        server.demote(planned=True, deadline=soon())
    assert not server.observe().healthy
    server.demote(planned=False, deadline=soon())
    with pytest.raises(Incomplete, match="started anew"):
        server.demote(planned=True, deadline=soon())


def test_h83_what_was_started_anew_is_promoted_only_once_it_was_compared(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """A roll-back, and who waits for its lease, are promoted without."""
    answer(monkeypatch, resource, state(DEMOTED))
    client = answer(monkeypatch, promoting, state(DEMOTED))
    server = server_of(place, ANOTHER)
    server.demote(planned=False, deadline=soon())
    with pytest.raises(Incomplete, match="started anew"):
        server.promote(soon())
    assert client.said == []
    server.catch_up(soon())
    server.promote(soon())
    assert "replicaof NO ONE" in client.said


def test_h83_what_was_started_anew_after_it_was_compared_does_not_catch_up(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    answer(monkeypatch, resource, state(DEMOTED))
    server = server_of(place, ANOTHER)
    server.demote(planned=False, deadline=soon())
    answer(monkeypatch, resource, state(DEMOTED, run_id="f" * 40))
    with pytest.raises(Incomplete, match="started anew"):
        server.catch_up(soon())


@pytest.mark.parametrize(
    ("said", "reigned"),
    [
        (state(DEMOTED), RUN),  # its lease ran out, or a planned change is taken back
        (state(DEMOTED), ""),  # a replica that has won
        (MASTER, ANOTHER),  # made the primary by hand, for a cluster that begins anew
    ],
)
def test_who_has_all_that_it_had_is_promoted(
    monkeypatch: pytest.MonkeyPatch, place: Place, said: State, reigned: str
) -> None:
    answer(monkeypatch, resource, said)
    answer(monkeypatch, promoting, said)
    assert server_of(place, reigned).promote(soon()).offset == 100
    assert Record(place.record).kept.reigned == RUN


@pytest.mark.parametrize("told", [{"loading": 1}, {"slave_repl_offset": 0}])
def test_h83_a_part_of_its_data_is_not_told_as_the_last_that_it_has(
    monkeypatch: pytest.MonkeyPatch, place: Place, told: dict[str, Any]
) -> None:
    answer(monkeypatch, resource, state(DEMOTED, **told))
    assert server_of(place, ANOTHER).demote(planned=False, deadline=soon()) is None


@pytest.mark.parametrize(
    ("said", "reigned"), [(MASTER, ANOTHER), (MASTER, ""), (state(DEMOTED), RUN)]
)
def test_h83_what_was_not_promoted_in_this_run_is_not_opened(
    monkeypatch: pytest.MonkeyPatch, place: Place, said: State, reigned: str
) -> None:
    client = answer(monkeypatch, resource, said)
    with pytest.raises(NotNow, match="started anew"):
        server_of(place, reigned).open(soon())
    assert client.said == []


# --- it does not answer, or obey -----------------------------------------------------------------


@pytest.fixture
def running() -> Iterator[subprocess.Popen[bytes]]:
    """A process that passes for the server's."""
    with subprocess.Popen(["sleep", "600"]) as passing:
        yield passing
        passing.kill()


OPEN = Path("/proc/self/fd")


def no_answer(*_: object) -> State:
    raise NoAnswer(exceptions.TimeoutError("Timeout reading from socket"))


def seen_once(
    monkeypatch: pytest.MonkeyPatch, place: Place, running: subprocess.Popen[bytes]
) -> RedisServer:
    """Return a primary that has answered as that process."""
    answer(monkeypatch, resource, attrs.evolve(MASTER, pid=running.pid))
    server = server_of(place, RUN)
    server.observe()
    return server


def test_h84_a_planned_change_kills_nobody_for_one_answer_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, place: Place, running: subprocess.Popen[bytes]
) -> None:
    """What comes back is its last snapshot, and its lease is renewed: it can be asked again."""
    server = seen_once(monkeypatch, place, running)
    monkeypatch.setattr(resource, "read_state", no_answer)
    monkeypatch.setattr(process, "ensure_running", no_answer)
    with pytest.raises(NotNow):
        server.demote(planned=True, deadline=soon())
    assert running.poll() is None
    server.demote(planned=False, deadline=soon())
    assert running.wait() == -9


def test_a_server_that_refuses_to_follow_nobody_is_killed_when_it_is_demoted_in_haste(
    monkeypatch: pytest.MonkeyPatch, place: Place, running: subprocess.Popen[bytes]
) -> None:
    server = seen_once(monkeypatch, place, running)

    def refuse(*_: object) -> None:
        raise NoAnswer(exceptions.ResponseError("NOPERM this user has no permissions"))

    monkeypatch.setattr(resource, "detach", refuse)
    monkeypatch.setattr(resource, "hand_over", refuse)
    monkeypatch.setattr(process, "ensure_running", no_answer)
    with pytest.raises(NotNow):
        server.demote(planned=True, deadline=soon())
    assert running.poll() is None
    assert server.demote(planned=False, deadline=soon()) is None
    assert running.wait() == -9


@pytest.mark.parametrize("told", [{"loading": 1}, {"slave_repl_offset": 0}])
def test_h83_what_is_still_loading_after_a_kill_has_no_position(
    monkeypatch: pytest.MonkeyPatch, place: Place, told: dict[str, Any]
) -> None:
    monkeypatch.setattr(resource, "read_state", no_answer)
    monkeypatch.setattr(process, "ensure_running", lambda *_: state(DEMOTED, **told))
    assert server_of(place, ANOTHER).demote(planned=False, deadline=soon()) is None
    monkeypatch.setattr(process, "ensure_running", lambda *_: state(DEMOTED))
    where = server_of(place, ANOTHER).demote(planned=False, deadline=soon())
    assert where == Position((Branch(A),), 100)


def test_looking_at_a_server_that_does_not_answer_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch, place: Place, running: subprocess.Popen[bytes]
) -> None:
    """It is looked at twice a second, for as long as it hangs."""
    server = seen_once(monkeypatch, place, running)
    monkeypatch.setattr(resource, "read_state", no_answer)
    before = len([*OPEN.iterdir()])
    for _ in range(5):
        assert server.observe().role is Role.UNKNOWN
    assert len([*OPEN.iterdir()]) == before
    running.kill()
    running.wait()
    assert server.observe().role is Role.STOPPED


# --- handed over ----------------------------------------------------------------------------------

PAUSE, UNPAUSE = "client_pause 4000", "client_unpause"


def followed(offset: int, *, online: bool = True) -> State:
    """Return the state of a primary at 100 with a follower that has told of so much."""
    return attrs.evolve(MASTER, followers=(Follower("10.0.0.2:6379", online, offset),))


def test_h84_writers_are_held_until_a_follower_has_all_and_then_refused(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    client = answer(monkeypatch, demoting, followed(100))
    assert demoting.hand_over(place, soon()) == 100
    assert client.said == [PAUSE, f"replicaof {NOWHERE[0]} {NOWHERE[1]}", UNPAUSE]


@pytest.mark.parametrize("said", [MASTER, followed(99), followed(100, online=False)])
def test_h84_nothing_is_handed_over_that_nobody_has_and_the_writers_go_on(
    monkeypatch: pytest.MonkeyPatch, place: Place, said: State
) -> None:
    client = answer(monkeypatch, demoting, said)
    monkeypatch.setattr(demoting, "read_state", lambda *_: state(REPLICA, master_repl_offset=99))
    with pytest.raises(NotNow):
        demoting.hand_over(place, now())
    assert client.said == [PAUSE, UNPAUSE]


def test_h84_a_follower_that_has_not_told_of_it_yet_is_asked(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """They report once a second; one on another branch has other things by the same offset."""
    answer(monkeypatch, demoting, followed(99))
    monkeypatch.setattr(demoting, "read_state", lambda *_: state(REPLICA))
    assert demoting.hand_over(place, soon()) == 100
    stranger = state(REPLICA, master_replid=ANOTHER)
    monkeypatch.setattr(demoting, "read_state", lambda *_: stranger)
    with pytest.raises(NotNow):
        demoting.hand_over(place, now())
