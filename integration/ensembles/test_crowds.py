"""H41 and H42: a hundred sessions that expire at once, a thousand candidates in one roll."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import TYPE_CHECKING

import attrs
import pytest
from election.actor import TICK
from election.waiting import WITHIN, until
from ensembles.candidate import Candidate

import zkelect
from zkelect.testing import FaultProxy, expire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from conftest import Operator

    from zkelect.testing import Frame
    from zkelect.testing.namespaces import NamespaceEnsemble

CROWD = 100
LONG = 10.0
UNHURRIED = 20.0
SESSIONS = 10

# --- H41: every session expires at once -------------------------------------------------------


@pytest.fixture
def crowd(ensemble: NamespaceEnsemble, path: str) -> Iterator[tuple[FaultProxy, list[Candidate]]]:
    """A hundred candidates, each on its own session, all behind one proxy."""
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(ensemble.hosts))
        yield (
            proxy,
            [
                stack.enter_context(
                    Candidate(proxy.hosts, path, f"c{number}", session_timeout=LONG)
                ).start()
                for number in range(CROWD)
            ],
        )


def test_h41_a_hundred_candidates_whose_sessions_expire_at_once_spread_when_they_return(
    crowd: tuple[FaultProxy, list[Candidate]], operator: Operator, path: str
) -> None:
    proxy, candidates = crowd
    until(lambda: len(operator.nodes(path)) == CROWD, "all stand")
    proxy.cut()
    until(lambda: not operator.nodes(path), "every session has expired")
    seen = len(proxy.log)
    proxy.heal()
    until(lambda: any(each.term for each in candidates), "one leads")
    until(lambda: len(operator.nodes(path)) == CROWD, "all stand again")
    welcomes = instants(proxy.log[seen:], "replies", "connect")[-CROWD:]
    creates = instants(proxy.log[seen:], "requests", "create2")
    assert len(creates) == CROWD
    assert sum(each.term is not None for each in candidates) == 1
    assert sum(len(each.diary.all("granted")) for each in candidates) == 2
    waited = statistics.median(creates) - statistics.median(welcomes)
    spread = creates[CROWD * 9 // 10] - creates[CROWD // 10]
    print(f"from the welcome to the create {waited:.2f} s; eight of ten within {spread:.2f} s")
    # Least values: a machine that is busy makes them larger. Chance is even, from 0 to T/10.
    assert waited > LONG / 40
    assert spread > LONG / 20


def instants(frames: Iterable[Frame], direction: str, name: str) -> list[float]:
    return sorted(f.at for f in frames if (f.direction, f.name) == (direction, name))


# --- H42: a change of leader among a thousand -------------------------------------------------


@attrs.frozen
class Thousand:
    """A leader, and behind it a thousand candidates on ten sessions.

    :ivar sentinel: through which these sessions talk: it counts.
    """

    leader: Candidate
    proxy: FaultProxy
    elections: list[zkelect.Election]

    def told(self) -> int:
        """Return how many watch events have come.

        Each session is asked a question first: an event that was on its way comes before the
        answer (ZooKeeper Programmer's Guide, "What ZooKeeper Guarantees about Watches").
        """
        for election in self.elections[:: len(self.elections) // SESSIONS]:
            assert election.leader(timeout=WITHIN)
        return self.proxy.replies["event"]


@pytest.fixture
def thousand(
    ensemble: NamespaceEnsemble,
    stand: Callable[..., Candidate],
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Thousand]:
    """A few sessions for all of them, which users may not do: a session stands once on a path."""
    monkeypatch.setattr("zkelect.session.places.Places.take", lambda *_: None)
    leader = stand("first", session_timeout=UNHURRIED)
    leader.lead()
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(ensemble.hosts))
        elections = [
            zkelect.Election(session, path, name=f"c{number}")
            for session in (
                stack.enter_context(
                    zkelect.connect(proxy.hosts, session_timeout=UNHURRIED, tick_time=TICK)
                )
                for _ in range(SESSIONS)
            )
            for number in range(1000 // SESSIONS)
        ]
        for election in elections:
            election.start()
        waits = zkelect.Phase.WAITING
        until(lambda: all(each.phase is waits for each in elections), "all wait")
        yield Thousand(leader, proxy, elections)


@pytest.mark.timeout(300)
def test_h42_a_change_of_leader_among_a_thousand_candidates_wakes_one(
    thousand: Thousand, operator: Operator, path: str
) -> None:
    assert len(operator.nodes(path)) == 1001
    heir = operator.nodes(path)[1]
    before = thousand.told()
    expire(thousand.leader.session)
    led = zkelect.Phase.LEADING
    until(lambda: any(each.phase is led for each in thousand.elections), "one leads")
    assert thousand.told() - before == 1
    assert operator.term(path)["node"] == heir
