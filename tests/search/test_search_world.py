"""What the searched world keeps and what it does not: else the search would prove less."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.ensemble import LATENESS, Ensemble
from search.evidence import Belief
from search.history import History
from search.leading import Leading
from search.learning import Learning
from search.log import Kind, Stand, Transaction, Tree
from search.network import Network, Weather
from search.scenario import Question, Scenario, draw
from search.serving import Serving
from search.timeline import Process, Timeline
from search.tracker import SessionTracker
from zkelect.core.lease import Lease
from zkelect.session.prober import Prober
from zkelect.session.watchdog import Watchdog

STORMY = Weather(latency=1.0, spike=5.0, spike_chance=0.3)
FOREVER = 1e6


def calm(**changes: Any) -> Scenario:
    """Return a scenario in which nothing happens by itself."""
    quiet = attrs.evolve(
        draw(Random(1), Question(adversary=0)),
        weather=Weather(latency=0.001, spike=0.0, spike_chance=0.0),
        rates=(1.0,) * 6,
        timeout=4.0,
        created=4.0,
        grants=(4.0,) * 4,
        tick=1.0,
        told_tick=1.0,
        handing=0.0,
        heir=False,
    )
    return attrs.evolve(quiet, **changes)


# --- time ----------------------------------------------------------------------------------------


def test_a_stalled_process_gets_its_events_late_and_in_order() -> None:
    timeline = Timeline()
    process = Process(timeline, 1)
    heard: list[tuple[float, float]] = []
    for instant in (3.0, 1.0, 2.0, 5.0):
        timeline.at(instant, process, lambda i=instant: heard.append((i, timeline.now)))
    process.stall(4.0)
    timeline.run(FOREVER, lambda: False)
    assert heard == [(1.0, 4.0), (2.0, 4.0), (3.0, 4.0), (5.0, 5.0)]


def test_clocks_have_rates() -> None:
    timeline = Timeline()
    fast = Process(timeline, 1, rate=1.01)
    timeline.now = 100.0
    assert fast.boottime() == pytest.approx(101.0)


# --- connections ---------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
def test_whatever_happens_a_link_keeps_its_order(seed: int) -> None:
    """Delays, spikes, holds and stalls: TCP hands over in the order of sending."""
    chance, timeline = Random(seed), Timeline()
    network = Network(timeline, chance, STORMY)
    near, far = Process(timeline, 1), Process(timeline, 2)
    nature = Process(timeline, -1)
    link = network.open(near, far)
    heard: list[object] = []
    for number in range(30):
        timeline.at(number / 5, nature, link.tell, near, heard.append, number)
        if chance.random() < 0.2:
            timeline.at(number / 5, nature, network.hold, near, far, chance.uniform(0, 3))
        if chance.random() < 0.2:
            timeline.at(number / 5, nature, far.stall, chance.uniform(0, 3))
    timeline.run(FOREVER, lambda: False)
    assert heard == list(range(30))


def test_what_was_sent_before_the_end_arrives_and_after_it_nothing() -> None:
    timeline = Timeline()
    network = Network(timeline, Random(0), STORMY)
    near, far = Process(timeline, 1), Process(timeline, 2)
    link = network.open(near, far)
    heard: list[object] = []
    link.tell(near, heard.append, "before")
    link.close(near)
    link.tell(near, heard.append, "after")
    link.tell(far, heard.append, "back")
    timeline.run(FOREVER, lambda: False)
    assert heard == ["before"]


def test_what_is_held_for_ever_never_arrives() -> None:
    timeline = Timeline()
    network = Network(timeline, Random(0), STORMY)
    near, far = Process(timeline, 1), Process(timeline, 2)
    link = network.open(near, far)
    heard: list[object] = []
    link.tell(near, heard.append, "under way")
    network.hold(near, far, math.inf)
    link.tell(near, heard.append, "later")
    timeline.run(FOREVER, lambda: False)
    assert heard == []
    assert not network.reaches(far, near)


# --- sessions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "expiry"), [(False, 4.5), (True, 6.0)])
def test_a_session_expires_when_it_is_not_touched(rounds: bool, expiry: float) -> None:
    timeline = Timeline()
    tracker = SessionTracker(Process(timeline, 0), 2.0, rounds=rounds)
    tracker.start({10: 4.0})
    timeline.now = 0.5
    assert tracker.touch(10, 4.0)
    assert tracker.next == pytest.approx(expiry)
    timeline.now = expiry
    assert list(tracker.expire()) == [10]
    assert not tracker.touch(10, 4.0), "what is being closed cannot be saved"


def test_a_smaller_timeout_makes_it_expire_sooner() -> None:
    """As the servers' ExpiryQueue does: it moves a session in either direction."""
    timeline = Timeline()
    tracker = SessionTracker(Process(timeline, 0), 2.0, rounds=False)
    tracker.start({10: 4.0})
    tracker.touch(10, 2.0)
    assert tracker.next == 2.0


def test_the_roll_is_what_is_agreed_on() -> None:
    first, second = Stand(10, 0), Stand(11, 0)
    tree = Tree({10: 4.0, 11: 4.0})
    for kind, stand in ((Kind.JOIN, first), (Kind.JOIN, second), (Kind.JOIN, first)):
        tree = Transaction(kind, stand.session, stand=stand).change(tree)
    assert tree.roll == (first, second)
    closed = Transaction(Kind.CLOSE, 10).change(tree)
    assert closed == Tree({11: 4.0}, (second,))
    assert Transaction(Kind.LEAVE, 11, stand=Stand(11, 9)).change(closed) == closed


# --- servers -------------------------------------------------------------------------------------


def opened(scenario: Scenario, seed: int = 0) -> Ensemble:
    ensemble = Ensemble(Timeline(), Random(seed), scenario)
    ensemble.open({10: scenario.created})
    return ensemble


@pytest.mark.parametrize("seed", range(5))
def test_a_ping_comes_at_most_j_after_it_is_due_or_the_process_wakes(seed: int) -> None:
    """The one bound on timing that the rule trusts; else the leader is stopped at will.

    A stall that is on when a ping falls due puts it off; a second one must not.
    """
    ensemble, chance = opened(calm(starved=False), seed), Random(seed)
    timeline, leader = ensemble.timeline, ensemble.newest()
    assert leader is not None
    pings: list[float] = []
    naps: list[tuple[float, float]] = []

    def stop() -> None:
        leader.stall(chance.uniform(0, 0.4))
        naps.append((timeline.now, leader.asleep_until))

    def ambush(role: Serving) -> bool:
        if role.server is leader and chance.random() < 0.7:
            stop()
        return not role.server.awake

    ensemble.ambush = ambush
    ensemble.pinging = lambda role: pings.append(timeline.now) if role.server is leader else None
    for number in range(200):
        timeline.at(number / 4, Process(timeline, -1), stop)
    timeline.run(40.0, lambda: False)
    assert len(pings) > 10  # before it is deposed, which a leader that is stopped so often may be
    for before, now in pairwise(pings):
        due = before + ensemble.tick / 2
        for fell, woke in naps:
            due = woke if fell <= due < woke else due
        assert now <= due + LATENESS + 1e-6


def test_news_of_a_session_dies_with_its_follower() -> None:
    ensemble = opened(calm())
    role = next(s.role for s in ensemble.voters if isinstance(s.role, Learning))
    leader = role.above
    assert isinstance(leader, Leading)
    before = leader.expiry(10)
    role.touch(10)
    leader.drop(role.server)
    ensemble.timeline.run(3.0, lambda: False)
    assert leader.expiry(10) == before


def test_news_of_a_session_comes_up_with_the_answer_to_a_ping() -> None:
    ensemble = opened(calm())
    role = next(s.role for s in ensemble.voters if isinstance(s.role, Learning))
    leader = role.above
    assert isinstance(leader, Leading)
    before = leader.expiry(10)
    role.touch(10)
    ensemble.timeline.run(1.0, lambda: False)
    assert leader.expiry(10) > before


def test_a_new_leader_starts_sessions_with_the_timeout_of_their_creation() -> None:
    ensemble = opened(calm(created=2.0))
    old = ensemble.newest()
    assert old is not None
    for other in ensemble.servers:
        if other is not old:
            ensemble.network.hold(old, other, math.inf)
            ensemble.network.hold(other, old, math.inf)
    for role in [server.role for server in ensemble.servers]:
        if isinstance(role, Learning):
            role.touch(10)
            ensemble.look(role.server)
    ensemble.timeline.run(FOREVER, lambda: ensemble.newest() is not old)
    newer = ensemble.newest()
    assert newer is not None
    assert isinstance(newer.role, Leading)
    assert newer.role.expiry(10) == pytest.approx(ensemble.timeline.now + 2.0)
    assert isinstance(old.role, Leading), "it does not know yet"


def test_a_leader_without_a_majority_commits_nothing() -> None:
    ensemble = opened(calm())
    old = ensemble.newest()
    assert old is not None
    for other in ensemble.servers:
        ensemble.network.hold(other, old, math.inf)
    old.role.submit(Transaction(Kind.CHECK, 10))
    ensemble.timeline.run(50.0, lambda: False)
    assert all(entry.session == 10 for entry in old.log)
    assert not isinstance(old.role, Serving) or old.role.learners
    assert ensemble.newest() is not old


# --- the client ----------------------------------------------------------------------------------


def test_the_client_is_the_librarys() -> None:
    client = History(1, Question()).clients[0]
    assert type(client.prober) is Prober
    assert isinstance(client.lease, Lease)
    assert any(isinstance(value, Watchdog) for value in vars(client).values())


def test_on_a_calm_day_a_client_leads_and_keeps_its_lease() -> None:
    history = History(1, Question(adversary=0), calm())
    client = history.clients[0]
    history.ensemble.open({client.number: 4.0})
    history.timeline.at(0.01, client, client.link.dial)
    history.timeline.run(30.0, lambda: False)
    assert [term.ended for term in history.office] == [math.inf]
    assert client.boottime() < client.lease.deadline
    assert 30 / 4 * 15 * 0.8 < client.lease.probes < 30 / 4 * 15 * 1.2


def test_a_belief_ends_where_it_was_taken_back() -> None:
    belief = Belief()
    belief.change(1.0, 10.0)
    belief.change(3.0, 2.0)
    assert belief.until() == 3.0
    belief.change(4.0, 12.0)
    assert belief.until() == 12.0
