"""Who is asked to go, as it hears of that: by a probe, by its own znode, in a roll, or never."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from session.troupe import PATH, Member, T, Troupe

import zkelect
from zkelect.session.candidacy import Candidacy
from zkelect.session.driver import SLICE
from zkelect.testing.fake_machine import Move

if TYPE_CHECKING:
    from zkelect.testing import FakeEnsemble

RECORD = f"{PATH}.zkelect"


@pytest.fixture
def ask(fake: FakeEnsemble) -> Asking:
    return Asking(fake)


class Asking:
    """An operator with a client of another kind."""

    def __init__(self, fake: FakeEnsemble) -> None:
        self._fake = fake

    def to_go(self, member: Member, *, wake: bool = False) -> None:
        """Write it into the record, and wake the candidate if it is to be woken."""
        self._write(
            evictions=[{"id": "1", "node": node_of(member), "by": "ada", "why": "it hangs"}]
        )
        if wake:
            self.touch(member)

    def pause(self) -> None:
        self._write(paused={"by": "ada"})

    def _write(self, **fields: Any) -> None:
        record = self._fake.znode(RECORD)
        assert record is not None
        self._fake.put(RECORD, json.dumps({**json.loads(record.data), **fields}).encode())

    def touch(self, member: Member) -> None:
        """Write its data anew, as they are."""
        path = f"{PATH}/{node_of(member)}"
        znode = self._fake.znode(path)
        assert znode is not None
        self._fake.put(path, znode.data)


def node_of(member: Member) -> str:
    node = member.election._candidacy.node
    assert node is not None
    return node


def history(fake: FakeEnsemble) -> list[dict[str, Any]]:
    znode = fake.znode(f"{RECORD}/history")
    assert znode is not None
    rows: list[dict[str, Any]] = json.loads(znode.data)
    return rows


def term(fake: FakeEnsemble, path: str = PATH) -> dict[str, Any]:
    znode = fake.znode(f"{path}.zkelect/term")
    assert znode is not None
    found: dict[str, Any] = json.loads(znode.data)
    return found


# --- a leader ----------------------------------------------------------------------------------


def test_h08_a_leader_that_is_asked_to_go_leaves_by_itself_and_the_next_one_leads(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    node = node_of(a)
    ask.to_go(a)
    troupe.until(lambda: b.terms, "B leads")
    assert a.ends == ["evicted"]
    assert [row["reason"] for row in history(fake)] == ["evicted"]
    assert f"{PATH}: {node} is asked to go by 'ada': it hangs" in caplog.messages
    troupe.until(lambda: a.phase is zkelect.Phase.WAITING, "A stands again, behind")


def test_it_is_woken_without_waiting_for_a_probe(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking
) -> None:
    a = troupe.lead("A")
    fake.advance(T / 100)
    ask.to_go(a, wake=True)
    fake.settle()  # no time passes, so that no probe is due
    assert a.ends == ["evicted"]


def test_h08_no_probe_that_is_committed_later_renews_its_lease(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking
) -> None:
    """It hears of nothing, and whatever it reads is lost on the way, and the link with it."""
    a, b = troupe.lead("A"), troupe.queue("B")
    fake.advance(3 * T)
    (leadership,) = a.terms
    fake.hold(a.session, Move.EVENT)
    for nth in range(1, 500):
        fake.lose_reply(a.session, "getData", nth)
    ask.to_go(a)
    asked, probes = fake.clock.now, troupe.asked[a.session].count("multi")
    while not a.ends:
        assert leadership.deadline <= asked + T
        fake.advance(0.02)
    assert (a.ends, b.terms) == (["lapsed"], [])
    assert fake.clock.now <= asked + T
    assert troupe.asked[a.session].count("multi") > probes + 3
    fake.release(a.session)


def test_its_body_is_waited_for_until_its_lease_is_over(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    (leadership,) = a.terms
    deadline = leadership.deadline
    monkeypatch.setattr(Candidacy, "returned", lambda *_: None)
    ask.to_go(a, wake=True)
    fake.settle()
    assert a.ends == ["evicted"]
    assert not b.terms
    troupe.until(lambda: b.terms, "B leads")
    assert fake.clock.now >= deadline
    monkeypatch.undo()
    a.election._candidacy.returned(leadership)


def test_a_leader_that_was_away_hears_of_it_when_it_is_back(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking
) -> None:
    a = troupe.lead("A")
    fake.drop(a.session)
    ask.to_go(a)
    troupe.until(lambda: a.ends, "A is deposed")
    assert a.ends == ["evicted"]


def test_that_another_one_is_asked_to_go_costs_a_leader_nothing(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    ask.to_go(b)
    fake.advance(5 * T)
    (leadership,) = a.terms
    assert leadership.check() == leadership.token
    assert b.phase is zkelect.Phase.WAITING


# --- who does not lead -------------------------------------------------------------------------


def test_the_first_of_a_paused_election_steps_back(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    c = troupe.queue("C")
    ask.pause()
    a.election.stop(0.0)
    fake.advance(T)
    ask.to_go(b)
    fake.advance(1.0)
    nodes = sorted(fake.children(PATH), key=lambda node: node[-10:])
    assert nodes == [node_of(c), node_of(b)]
    assert not b.terms
    assert not c.terms


def test_who_was_deleted_while_it_waits_does_not_lead_by_hearing_of_the_other_first(
    troupe: Troupe, fake: FakeEnsemble, ask: Asking
) -> None:
    """Its own end comes as an event, the other's as an answer, on another thread."""
    a, b = troupe.lead("A"), troupe.queue("B")
    deleted = node_of(b)
    fake.hold(b.session, Move.SERVE)
    ask.touch(a)  # so B sets its watch anew, and is yet to be answered
    fake.settle()
    fake.hold(b.session, Move.EVENT)
    ask.to_go(b)
    fake.delete(f"{PATH}/{deleted}")
    a.election.stop(0.0)
    fake.settle()
    fake.release(b.session)
    fake.hold(b.session, Move.EVENT)
    troupe.until(lambda: b.terms, "B leads")
    assert b.terms[0].node != deleted
    fake.release(b.session)


# --- what the term promises --------------------------------------------------------------------


def test_the_term_tells_how_long_a_lease_may_last(troupe: Troupe, fake: FakeEnsemble) -> None:
    troupe.lead("A")
    assert term(fake)["longest_lease"] == T


def test_a_session_whose_probes_do_not_check_all_promises_nothing(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    session = troupe.connect()
    elections = [zkelect.Election(session, f"/many/{number}") for number in range(SLICE + 2)]
    for election in elections:
        election.start()
        fake.settle()
    fake.advance(T)
    told = [term(fake, election.path)["longest_lease"] for election in elections]
    assert told == [T] * SLICE + [None] * 2


def test_who_was_promised_is_checked_by_each_probe_however_many_come_later(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    session = troupe.connect()
    first = zkelect.Election(session, "/many/first")
    first.start()
    fake.advance(T)
    for number in range(3 * SLICE):
        zkelect.Election(session, f"/many/{number}").start()
        fake.settle()
    fake.advance(T)
    leading = session.roster.promised
    assert first._candidacy.driver in leading
    checked = [
        first._candidacy.driver in session.prober._slice(list(session.roster.warm))
        for _ in range(8)
    ]
    assert all(checked)
    first.stop(0.0)
    fake.advance(T)
    assert first._candidacy.driver not in leading
