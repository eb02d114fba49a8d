"""What is promised as a count: requests, round trips, processes woken, threads.

The same counts as in ``integration/bench``, which prints them with the times beside.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from bench.crowd import Crowd
from bench.frames import join_of, requests_before, round_trips
from bench.standing import TICK, WITHIN, Candidate

import zkelect
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator

UNHURRIED = 20.0  # the session timeout, seconds: a silent link is dropped after a fifth of it


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with LocalEnsemble(tick_time=TICK, max_session_timeout=UNHURRIED) as zookeeper:
        yield zookeeper.hosts


def connect(server: str) -> zkelect.Session:
    return zkelect.connect(server, session_timeout=UNHURRIED, tick_time=TICK)


# --- requests ------------------------------------------------------------------------------


def test_an_heir_is_promoted_by_the_deletion_event_alone(server: str, path: str) -> None:
    """Not a request of its own gets through, and none is tried, until it leads.

    One probe is left unanswered before: until it is answered no other one may go out.
    """
    with (
        Candidate(server, "A", timeout=UNHURRIED) as first,
        Candidate(server, "B", timeout=UNHURRIED) as second,
    ):
        leader = first.stand(path)
        leader.elected.result(WITHIN)
        heir = second.stand(path, heir=True)
        second.await_probe()
        second.forwarder.cut("requests")
        assert second.forwarder.wait_for(
            lambda: any(f.name == "multi" and not f.passed for f in second.frames()), timeout=WITHIN
        )
        second.mark()
        leader.leave()
        granted = heir.granted.result(WITHIN)
        asked = requests_before(second.frames(), granted)
        assert [name for name in asked if name != "ping"] == []
        second.forwarder.heal()
        heir.leave()


def test_joining_behind_a_leader_takes_two_round_trips(server: str, path: str) -> None:
    """Create, roll and record at once; then own znode, predecessor and, as the heir, the record.

    The least of five counts: see :func:`round_trips`.
    """
    counts: dict[str, list[tuple[tuple[str, ...], ...]]] = {"heir": [], "behind": []}
    with (
        Candidate(server, "A") as first,
        Candidate(server, "B") as second,
        Candidate(server, "C") as third,
    ):
        leader = first.stand(path)
        leader.elected.result(WITHIN)
        for _ in range(5):
            standing = []
            for place, candidate in (("heir", second), ("behind", third)):
                heir = place == "heir"
                candidate.mark()
                standing.append(candidate.stand(path, heir=heir))
                counts[place].append(round_trips(join_of(candidate.frames(), heir=heir)))
            for each in reversed(standing):
                each.leave()
        leader.leave()
    joined = ("create2", "getChildren", "getData")
    assert min(counts["heir"], key=len) == (joined, ("getData", "getData", "getData"))
    assert min(counts["behind"], key=len) == (joined, ("getData", "getData"))


# --- processes -----------------------------------------------------------------------------


def test_one_death_wakes_one_process(server: str, path: str) -> None:
    with Crowd(server, path, 20) as crowd:
        assert [crowd.end_leader() for _ in range(3)] == [1, 1, 1]


# --- threads -------------------------------------------------------------------------------


class Hooks:
    def __init__(self) -> None:
        self.told = threading.Event()

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.told.set()

    def suspended(self, leadership: zkelect.Leadership) -> None: ...

    def deposed(self, leadership: zkelect.Leadership) -> None: ...


class NewThreads:
    """The threads that have come since this was made."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def names(self) -> list[str]:
        return [thread.name for thread in self._new()]

    def callbacks(self) -> int:
        return self.names().count("zkelect callbacks")

    def end(self) -> bool:
        """Wait until all have ended."""
        for thread in self._new():
            thread.join(WITHIN)
        return not self._new()

    def _new(self) -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread not in self._before]


@pytest.fixture
def new_threads() -> NewThreads:
    return NewThreads()


def test_a_session_has_three_threads_of_kazoo_and_one(server: str, new_threads: NewThreads) -> None:
    with connect(server):
        ours = [name for name in new_threads.names() if name.startswith("zkelect")]
        assert ours == [f"zkelect {server}"]
        assert len(new_threads.names()) == 3 + len(ours)
    assert new_threads.end()


def test_leading_takes_no_thread_however_many_elections(
    server: str, path: str, new_threads: NewThreads
) -> None:
    with connect(server) as session, ExitStack() as stack:
        before = new_threads.names()
        for number in range(10):
            election = zkelect.Election(session, f"{path}-{number}")
            stack.enter_context(election.campaign(timeout=WITHIN))
        assert new_threads.names() == before


def test_callback_threads_come_with_the_first_callback(
    server: str, path: str, new_threads: NewThreads
) -> None:
    hooks = Hooks()
    with connect(server) as session:
        election = zkelect.Election(session, path)
        with election.campaign(timeout=WITHIN):
            pass
        assert new_threads.callbacks() == 0
        with election.listen(hooks):
            assert new_threads.callbacks() == 0
            with election.campaign(timeout=WITHIN):
                assert hooks.told.wait(WITHIN)
                assert new_threads.callbacks() == 1
