"""Probes and what they prove: only a quorum commit on one connection counts."""

from __future__ import annotations

import json

import pytest
from session.troupe import PATH, TICK, T, Troupe, client_of

import zkelect
from zkelect.core.lease import GAP, Lease, pace_of
from zkelect.session.session import Session
from zkelect.testing import FakeEnsemble
from zkelect.testing.fake_client import State
from zkelect.testing.fake_machine import Move


def read_all_the_time(session: Session, fake: FakeEnsemble, seconds: float) -> int:
    """Let time pass while the application asks for something; return how often it was told."""
    told: list[object] = []
    for _ in range(round(seconds / 0.05)):
        session.gateway.children("/", told.append)
        fake.advance(0.05)
    return len(told)


def test_h07_a_server_without_a_quorum_proves_nothing_whatever_it_answers(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a = troupe.lead("A")
    (term,) = a.terms
    fake.servers[0].isolate()
    proven = a.session.lease.deadline
    assert read_all_the_time(a.session, fake, T / 5) > 1
    assert client_of(a.session).state is State.CONNECTED
    fake.servers[1].stop()
    fake.servers[2].stop()  # so that there is nowhere else to go
    read_all_the_time(a.session, fake, T)
    assert a.session.lease.deadline == proven < fake.clock.now
    with pytest.raises(zkelect.LeadershipLost, match="lapsed"):
        term.check()


def test_a_probe_that_failed_renews_nothing(troupe: Troupe, fake: FakeEnsemble) -> None:
    """Its answer came, but nothing was committed."""
    a = troupe.lead("A")
    (term,) = a.terms
    fake.advance(2 * T)  # from here on each answer raises the deadline
    record = fake.znode(f"{PATH}.zkelect")
    assert record is not None
    probes, proven = troupe.asked[a.session].count("multi"), term.deadline
    fake.hold(a.session, Move.EVENT)
    fake.put(f"{PATH}.zkelect", record.data)  # the version a probe checks is an old one now
    while troupe.asked[a.session].count("multi") == probes:
        fake.elapse(0.01)
        fake.turn()
        proven = term.deadline
    for move in (Move.SERVE, Move.READ, Move.READ, Move.ANSWER):  # before the answer an event
        troupe.let(a.session, move)
    assert term.deadline == proven
    fake.advance(T)
    assert term.check() == term.token  # the record says what it said: the term goes on


def test_one_probe_at_a_time(troupe: Troupe, fake: FakeEnsemble) -> None:
    a = troupe.lead("A")
    fake.hold(a.session, Move.READ)
    before = troupe.asked[a.session].count("multi")
    for _ in range(10):
        fake.elapse(T / 60)
        fake.turn()
    assert troupe.asked[a.session].count("multi") == before + 1


def test_an_overdue_probe_is_asked_for_now_and_then(troupe: Troupe, fake: FakeEnsemble) -> None:
    """Its answer may be here, and only the thread that hands it over be late."""
    a = troupe.lead("A")
    probes = troupe.asked[a.session].count("multi")
    fake.hold(a.session, Move.ANSWER)
    while troupe.asked[a.session].count("multi") == probes:
        fake.elapse(0.01)
        fake.turn()
    fake.elapse(T / 2)
    now = fake.clock.now
    assert a.session.prober.due(now) == now + GAP


def test_an_answer_that_outlives_its_connection_proves_nothing(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """Asked on one connection, handed over on the next, while a new probe is under way."""
    a = troupe.lead("A")
    (term,) = a.terms
    fake.advance(2 * T)
    asked = troupe.asked[a.session]
    fake.hold(a.session, Move.ANSWER, Move.READ)
    before = asked.count("multi")
    while asked.count("multi") == before:
        fake.elapse(0.01)
        fake.turn()
    for move in (Move.SERVE, Move.READ):
        fake.release(a.session)
        troupe.let(a.session, move)
    fake.hold(a.session, Move.ANSWER)
    fake.drop(a.session)
    for move in (Move.DROP, Move.DIAL, Move.READ):
        troupe.let(a.session, move)
    fake.turn()
    assert asked.count("multi") == before + 2
    proven = term.deadline
    fake.elapse(0.05)
    fake.release(a.session)
    troupe.let(a.session, Move.ANSWER)
    assert a.session.lease.pending  # the new probe is still unanswered
    assert term.deadline == proven


def test_the_next_probe_goes_out_with_the_grant(
    troupe: Troupe, fake: FakeEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would depose a phantom within a millisecond."""
    a, heir = troupe.lead("A"), troupe.connect(4.0)
    b = troupe.cast("B", heir).start()
    probes: list[float] = []
    ask = Lease.ask

    def note(lease: Lease, at: float) -> None:
        if lease is heir.lease:
            probes.append(at)
        ask(lease, at)

    monkeypatch.setattr(Lease, "ask", note)
    fake.advance(4.0)
    before = len(probes)
    while len(probes) == before:
        fake.advance(0.01)
    a.election.stop(0.0)
    fake.settle()
    assert b.terms
    fake.advance(4.0)
    assert probes[before + 1] - probes[before] < (GAP + pace_of(4.0)) / 2
    assert probes[-1] - probes[-2] > (GAP + pace_of(4.0)) / 2


def test_another_record_ends_the_term(troupe: Troupe, fake: FakeEnsemble) -> None:
    """Probes check its version: nobody waits for the slow re-read."""
    a = troupe.lead("A")
    record = fake.znode(f"{PATH}.zkelect")
    assert record is not None
    fields = json.loads(record.data)
    fake.put(f"{PATH}.zkelect", json.dumps({**fields, "generation": 2}).encode())
    fake.advance(T / 4)
    assert a.ends == ["record-changed"]


def test_h19_h40_the_timeout_granted_rules(troupe: Troupe, fake: FakeEnsemble) -> None:
    """The servers grant 20 ticks at most, whatever is asked."""
    session = troupe.connect(60.0)
    assert session.timeout == 20 * TICK
    a = troupe.cast("A", session).start()
    troupe.until(lambda: a.terms, "A is elected")
    assert a.terms[0].remaining() < 20 * TICK
