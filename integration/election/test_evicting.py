"""H08: an operator evicts a candidate, and no two lead meanwhile."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import pytest
from election.waiting import WITHIN, boottime, until

import zkelect
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Actor, Campaign, Operator, Process, Sentry

    from zkelect.testing import LocalEnsemble

T = 2.0
OURS: Final = "00000000000080008000000000000000"
"""The uuid of a znode that looks like one of ours, and whose session never ends by itself."""


class Eviction(threading.Thread):
    """One that is asked for on a thread of its own.

    :ivar outcome: who went and how, or what it raised.
    """

    def __init__(self, election: zkelect.Election, who: str, **options: Any) -> None:
        super().__init__(daemon=True)
        self.outcome: Future[zkelect.Evicted] = Future()
        self._evict = lambda: election.evict(who, **options)
        self.start()

    def run(self) -> None:
        try:
            self.outcome.set_result(self._evict())
        except BaseException as error:  # noqa: BLE001  # the test looks at it
            self.outcome.set_exception(error)


class Stuck:
    """A leader that is long dead, while its znode has stayed: a znode and a term, by hand."""

    def __init__(self, operator: Operator, path: str) -> None:
        self._operator = operator
        self._path = path
        self.node = operator.stand(path, uuid=OURS)

    def write_term(self, longest_lease: float | None) -> None:
        """Write the term of a leader whose token fits its znode."""
        kazoo, path = self._operator.kazoo, f"{self._path}.zkelect"
        record = json.loads(kazoo.get(path)[0])
        stat = kazoo.exists(f"{self._path}/{self.node}")
        token = zkelect.Token(
            lineage=record["uuid"][:16], generation=1, czxid=stat.czxid, holder="0" * 16
        )
        term = {"token": str(token), "node": self.node, "name": "peer", "phase": "serving"}
        if longest_lease is not None:
            term["longest_lease"] = longest_lease  # type: ignore[assignment]  # JSON takes both
        kazoo.set(f"{path}/term", json.dumps(term).encode())


@pytest.fixture
def begun(zookeeper: LocalEnsemble, path: str) -> None:
    """The election's record, as whoever stood before has left it."""
    with zkelect.connect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
        zkelect.Election(session, path, name="first").run(lambda _: None)


@pytest.fixture
def stuck(begun: None, operator: Operator, path: str) -> Stuck:
    return Stuck(operator, path)


def rows(operator: Operator, path: str, kind: str) -> list[dict[str, Any]]:
    """Rows of the history that have such a field: "act" or "token"."""
    history = json.loads(operator.kazoo.get(f"{path}.zkelect/history")[0])
    return [row for row in history if kind in row]


# --- a leader that lives -----------------------------------------------------------------------


def test_h08_a_living_leader_gives_way_by_itself_and_its_successor_leads(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    a, b = cast("a"), cast("b")
    leadership = a.lead()
    b.queue()
    evicted = b.election.evict("a", why="a new kernel", by="ops@here")
    assert (evicted.node, evicted.name) == (leadership.node, "a")
    assert evicted.outcome is zkelect.EvictionOutcome.GONE
    deposed = a.diary.wait("deposed")
    assert deposed.reason == "evicted"
    assert b.diary.wait("elected").at >= deposed.at
    assert b.diary.wait("elected").leadership.token > leadership.token
    until(lambda: len(operator.nodes(path)) == 2, "a stands again, behind")
    assert operator.terms(path)[0]["reason"] == "evicted"
    (act,) = rows(operator, path, "act")
    assert (act["act"], act["target"], act["by"], act["why"]) == (
        "evict",
        "a",
        "ops@here",
        "a new kernel",
    )


def test_h15_its_body_is_waited_for_until_its_lease_is_over(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign]
) -> None:
    leading = campaign(cast("a").election)
    leadership = leading.leadership()
    b = cast("b").queue()
    deadline = leadership.deadline
    assert b.election.evict("a").outcome is zkelect.EvictionOutcome.GONE
    assert leadership.reason == "evicted"
    assert b.diary.wait("elected").at >= deadline
    assert not leading.left.done()


def test_a_leader_may_evict_itself_in_its_own_block(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign]
) -> None:
    a = cast("a")
    leadership = campaign(a.election).leadership()
    b = cast("b").queue()
    assert a.election.evict(leadership.node).node == leadership.node
    assert b.diary.wait("elected").at >= leadership.progressed
    with pytest.raises(zkelect.LeadershipLost, match="evicted"):
        leadership.check()


def test_the_other_elections_of_its_session_go_on(cast: Callable[..., Actor], path: str) -> None:
    a = cast("a")
    a.lead()
    other = zkelect.Election(a.session, f"{path}-other", name="a")
    with other.campaign() as leadership:
        b = cast("b").queue()
        b.election.evict("a")
        b.diary.wait("elected")
        before = leadership.deadline
        until(lambda: leadership.deadline > before, "its lease is renewed")
        assert leadership.check() == leadership.token


def test_from_asyncio(cast: Callable[..., Actor], zookeeper: LocalEnsemble, path: str) -> None:
    leadership = cast("a").lead()
    b = cast("b").queue()

    async def main() -> zkelect.Evicted:
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            return await zkelect.AsyncElection(session, path).evict("a", why="to try it")

    assert asyncio.run(asyncio.wait_for(main(), WITHIN)).node == leadership.node
    b.diary.wait("elected")


# --- a leader that hangs -----------------------------------------------------------------------


@pytest.fixture
def hung(
    spawn: Callable[..., Process], cast: Callable[..., Actor], tmp_path: Path
) -> tuple[Process, Actor]:
    """A leader whose library hangs while its client lives on; its body checks all the time."""
    leader = spawn("a", f"--fence={tmp_path / 'fence'}")
    leader.wait("elected")
    leader.does("claim")
    heir = cast("b").queue()
    leader.order("write-late", "x")
    leader.wait("checked")
    return leader, heir


def test_h08_a_leader_that_hangs_leads_no_more_when_its_successor_does(
    hung: tuple[Process, Actor], operator: Operator, path: str
) -> None:
    """Its session is alive; it hears of nothing until its lease is over, and goes then."""
    leader, heir = hung
    heir.election.evict("a")
    elected = heir.diary.wait("elected")
    assert leader.wait("refused")["passed"] < elected.at
    until(lambda: operator.term(path)["name"] == "b", "b's term is written")


def test_h08_a_leader_that_is_stopped_leads_no_more_when_its_successor_does(
    hung: tuple[Process, Actor],
) -> None:
    """Whoever is first removes its znode: the operator, or the servers, which hear nothing."""
    leader, heir = hung
    leader.signal(signal.SIGSTOP)
    try:
        heir.election.evict("a")
        elected = heir.diary.wait("elected")
    finally:
        leader.signal(signal.SIGCONT)
    assert leader.wait("refused")["passed"] < elected.at


def test_h08_a_leader_that_hears_nothing_is_deleted_when_its_lease_is_over(
    cast: Callable[..., Actor],
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
    watch: type[Sentry],
) -> None:
    """What it sends arrives and keeps its session alive; no answer does."""
    heir = cast("b")
    with (
        FaultProxy(zookeeper.hosts) as proxy,
        zkelect.connect(proxy.hosts, session_timeout=T, tick_time=0.2) as session,
    ):
        election = zkelect.Election(session, path, name="a")
        with election.campaign() as leadership:
            heir.queue()
            sentry = watch(leadership)
            proxy.drop_reply("any", times=None)
            proxy.swallow_event(times=None)
            evicted = heir.election.evict("a")
            elected = heir.diary.wait("elected")
            sentry.relieve()
            assert evicted.outcome is zkelect.EvictionOutcome.LEASE_OVER
            assert sentry.passed < elected.at
            (row,) = rows(operator, path, "token")
            assert (row["name"], row["reason"]) == ("a", "evicted")
            assert sentry.deadline < elected.at
            proxy.heal()


# --- a znode whose leader is long dead ---------------------------------------------------------


def test_a_dead_leader_is_deleted_after_the_longest_lease_of_its_term(
    stuck: Stuck, cast: Callable[..., Actor]
) -> None:
    stuck.write_term(0.5)
    b = cast("b").queue()
    began = boottime()
    assert b.election.evict(stuck.node).outcome is zkelect.EvictionOutcome.LEASE_OVER
    assert began + 0.5 <= boottime()
    b.diary.wait("elected")


@pytest.mark.parametrize("written", [None, -1.0, float("nan"), float("inf"), 1e300])
def test_h08_when_nothing_tells_how_long_its_lease_may_last_it_is_not_deleted(
    stuck: Stuck, cast: Callable[..., Actor], operator: Operator, path: str, written: float | None
) -> None:
    stuck.write_term(written)
    b = cast("b").queue()
    with pytest.raises(zkelect.EvictionFailed, match="nothing tells") as caught:
        b.election.evict(stuck.node, timeout=0.3)
    assert caught.value.name == "peer"
    assert operator.nodes(path)[0] == stuck.node
    began = boottime()
    evicted = b.election.evict(stuck.node, longest_lease=0.4)
    assert evicted.outcome is zkelect.EvictionOutcome.LEASE_OVER
    assert boottime() >= began + 0.4


def test_the_term_of_an_earlier_znode_tells_nothing(
    stuck: Stuck, cast: Callable[..., Actor]
) -> None:
    """It is of the one who led before, so that its leases may have been shorter."""
    b = cast("b").queue()
    with pytest.raises(zkelect.EvictionFailed):
        b.election.evict(stuck.node, timeout=0.2)


def test_it_goes_by_itself_meanwhile(
    stuck: Stuck, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    stuck.write_term(WITHIN)
    b = cast("b").queue()
    eviction = Eviction(b.election, stuck.node)
    until(lambda: b"evictions" in operator.kazoo.get(f"{path}.zkelect")[0], "it is asked to go")
    operator.delete(path, stuck.node)
    assert eviction.outcome.result(WITHIN).outcome is zkelect.EvictionOutcome.GONE
    b.diary.wait("elected")


# --- who does not lead -------------------------------------------------------------------------


def test_h09_who_waits_is_deleted_at_once_and_stands_again_behind(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    a, b, c = cast("a"), cast("b"), cast("c")
    leadership = a.lead()
    b.queue()
    c.queue()
    before = operator.nodes(path)
    evicted = c.election.evict("b", by="ops@here")
    assert (evicted.node, evicted.outcome) == (before[1], zkelect.EvictionOutcome.DELETED)
    until(lambda: len(operator.nodes(path)) == 3, "b stands again")
    assert operator.nodes(path)[:2] == [before[0], before[2]]
    assert leadership.check() == leadership.token
    assert a.diary.all("deposed") == []
    assert [row["target"] for row in rows(operator, path, "act")] == ["b"]


def test_while_paused_nobody_leads_after_it_and_it_is_said_by_whom(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    a, b = cast("a"), cast("b")
    a.lead()
    b.queue()
    until(b.election.leader, "a's term is written")
    pause = b.election.pause("freeze", by="K")
    assert pause is not None
    evicted = b.election.evict("a")
    assert evicted.pause is not None
    assert (evicted.pause.by, evicted.pause.why) == ("K", "freeze")
    assert "nobody leads after it: paused by 'K'" in str(evicted)
    until(lambda: len(operator.nodes(path)) == 2, "a stands again")
    assert b.election.leader() is None
    assert b.diary.all("elected") == []
    b.election.resume()
    b.diary.wait("elected")


# --- candidates of other libraries -------------------------------------------------------------


def test_a_candidate_of_another_library_is_deleted_only_when_that_is_said(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    peer = operator.stand(path)
    b = cast("b").queue()
    with pytest.raises(zkelect.ForeignCandidate, match="no lease to wait for") as caught:
        b.election.evict(peer)
    assert caught.value.node == peer
    assert operator.nodes(path)[0] == peer
    evicted = b.election.evict(peer, foreign=True)
    assert evicted.outcome is zkelect.EvictionOutcome.FOREIGN
    b.diary.wait("elected")


def test_a_leader_of_kazoos_does_not_notice_that_it_was_evicted(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    """So that it is refused as a rule."""
    lock = operator.kazoo.Lock(path, "old-1")
    lock.acquire(timeout=WITHIN)
    b = cast("b").queue()
    b.election.evict("old-1", foreign=True)
    b.diary.wait("elected")
    assert lock.is_acquired


# --- several at once ---------------------------------------------------------------------------


def test_two_operators_at_once_help_each_other(
    stuck: Stuck, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    stuck.write_term(0.5)
    b, c = cast("b").queue(), cast("c").queue()
    asked = [Eviction(each.election, stuck.node, by=each.name) for each in (b, c)]
    ends = [each.outcome.result(WITHIN) for each in asked]
    assert {end.node for end in ends} == {stuck.node}
    elected = b.diary.wait("elected")
    assert c.diary.all("elected") == []
    assert elected.leadership.check() == elected.leadership.token


def test_h08_who_goes_on_where_another_operator_died_waits_no_less(
    stuck: Stuck, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    stuck.write_term(0.6)
    b = cast("b").queue()
    path_of_record = f"{path}.zkelect"
    record = json.loads(operator.kazoo.get(path_of_record)[0])
    asked = [{"id": "dead", "node": stuck.node, "by": "somebody", "why": "died midway"}]
    operator.kazoo.set(path_of_record, json.dumps({**record, "evictions": asked}).encode())
    began = boottime()
    assert b.election.evict(stuck.node).outcome is zkelect.EvictionOutcome.LEASE_OVER
    assert boottime() >= began + 0.6
    (kept,) = json.loads(operator.kazoo.get(path_of_record)[0])["evictions"]
    assert kept["id"] == "dead"


def test_h08_when_the_word_is_taken_back_meanwhile_it_is_said_again_and_waited_for(
    stuck: Stuck, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    """A leader that reads the record then may renew its lease once more."""
    stuck.write_term(0.6)
    b = cast("b").queue()
    path_of_record = f"{path}.zkelect"
    eviction = Eviction(b.election, stuck.node)
    until(lambda: b"evictions" in operator.kazoo.get(path_of_record)[0], "it is asked to go")
    record = json.loads(operator.kazoo.get(path_of_record)[0])
    taken_back = boottime()
    operator.kazoo.set(path_of_record, json.dumps({**record, "evictions": 7}).encode())
    assert eviction.outcome.result(WITHIN).outcome is zkelect.EvictionOutcome.LEASE_OVER
    assert boottime() >= taken_back + 0.6
    (again,) = json.loads(operator.kazoo.get(path_of_record)[0])["evictions"]
    assert again["node"] == stuck.node
    assert len(rows(operator, path, "act")) == 2


def test_whatever_the_page_says_that_an_older_design_knew(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    a, b = cast("a"), cast("b")
    a.lead()
    b.queue()
    operator.kazoo.create(f"{path}.zkelect/evict", b"\xff\x00 not json")
    assert b.election.evict("a").name == "a"
    b.diary.wait("elected")


def test_it_is_asked_once_also_when_answers_are_lost(
    stuck: Stuck,
    zookeeper: LocalEnsemble,
    cast: Callable[..., Actor],
    path: str,
    operator: Operator,
) -> None:
    stuck.write_term(0.5)
    b = cast("b").queue()
    with (
        FaultProxy(zookeeper.hosts) as proxy,
        zkelect.connect(proxy.hosts, session_timeout=T, tick_time=0.2) as session,
    ):
        for nth in (1, 2):
            proxy.drop_reply("multi", nth=nth)
        evicted = zkelect.Election(session, path).evict(stuck.node)
    assert evicted.outcome is zkelect.EvictionOutcome.LEASE_OVER
    b.diary.wait("elected")
    assert len(rows(operator, path, "act")) == 1


# --- what is refused ---------------------------------------------------------------------------


def test_a_name_that_nobody_bears_is_refused_with_those_who_stand(
    cast: Callable[..., Actor],
) -> None:
    a = cast("a")
    a.lead()
    with pytest.raises(zkelect.NotStanding, match="'x' does not stand; 'a' does") as caught:
        a.election.evict("x")
    assert caught.value.standing == ("a",)


def test_a_name_that_two_bear_is_refused_with_their_znodes(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    """A name is a label: the one who hangs may be an earlier life of the other."""
    first, second = cast("a"), cast("a")
    first.lead()
    second.queue()
    with pytest.raises(zkelect.InvalidArgument) as caught:
        first.election.evict("a")
    assert all(node in str(caught.value) for node in operator.nodes(path))
    assert first.election.evict(operator.nodes(path)[1]).name == "a"


@pytest.mark.parametrize(
    ("who", "options"),
    [
        (7, {}),
        ("a", {"timeout": -1.0}),
        ("a", {"timeout": None}),
        ("a", {"longest_lease": -0.1}),
        ("a", {"longest_lease": True}),
        ("a", {"why": "x" * 9000}),
        ("a", {"by": "\ud800"}),
    ],
)
def test_what_cannot_be_meant_is_refused(
    cast: Callable[..., Actor], who: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(zkelect.InvalidArgument):
        cast("a").election.evict(who, **options)
