"""A pause as candidates hear of it: by the watch, by a probe, behind a reconnect, in a roll."""

from __future__ import annotations

import json

import pytest
from session.troupe import PATH, Member, T, Troupe

import zkelect
from zkelect.testing import FakeEnsemble
from zkelect.testing.fake_machine import Move

RECORD = f"{PATH}.zkelect"


@pytest.fixture
def pause(fake: FakeEnsemble) -> Pauses:
    return Pauses(fake)


class Pauses:
    """An operator with a client of another kind."""

    def __init__(self, fake: FakeEnsemble) -> None:
        self._fake = fake

    def begin(self) -> None:
        self._write({"by": "ada@host-a", "why": "the disk is being changed"})

    def end(self) -> None:
        self._write(None)

    def _write(self, paused: object) -> None:
        record = self._fake.znode(RECORD)
        assert record is not None
        fields = json.loads(record.data)
        self._fake.put(RECORD, json.dumps({**fields, "paused": paused}).encode())


def is_kept(member: Member) -> bool:
    return member.phase is zkelect.Phase.WAITING and not member.terms


def test_the_heir_of_a_paused_election_waits_and_leads_at_once_when_it_is_resumed(
    troupe: Troupe, fake: FakeEnsemble, pause: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    pause.begin()
    a.election.stop(0.0)
    fake.advance(3 * T)
    assert a.ends == ["resigned"]
    assert is_kept(b)
    said = [line for line in caplog.messages if "B is first and may not lead: paused by" in line]
    assert len(said) == 1, "once, however often it is proven"
    pause.end()
    fake.settle()
    assert b.terms


def test_the_leader_of_a_paused_election_goes_on(
    troupe: Troupe, fake: FakeEnsemble, pause: Pauses
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    (term,) = a.terms
    pause.begin()
    fake.advance(5 * T)
    assert term.check() == term.token
    assert is_kept(b)


def test_a_pause_that_no_watch_tells_is_found_by_the_next_probe(
    troupe: Troupe, fake: FakeEnsemble, pause: Pauses
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    fake.hold(b.session, Move.EVENT)
    pause.begin()
    fake.advance(T)
    a.election.stop(0.0)
    fake.advance(T)
    fake.release(b.session)
    fake.advance(3 * T)
    assert is_kept(b)


def test_who_joins_a_paused_election_waits_though_nobody_is_ahead(
    troupe: Troupe, fake: FakeEnsemble, pause: Pauses
) -> None:
    troupe.lead("A").election.stop(0.0)
    fake.settle()
    pause.begin()
    b = troupe.queue("B")
    fake.advance(3 * T)
    assert is_kept(b)
    pause.end()
    fake.settle()
    assert b.terms


def test_only_who_may_lead_next_watches_the_record(troupe: Troupe, fake: FakeEnsemble) -> None:
    """So a pause wakes two processes, whatever the crowd, and joining far behind costs no more."""
    a = troupe.lead("A")
    asked = []
    for name in "BCDE":
        member = troupe.queue(name)
        fake.settle()
        asked.append(troupe.asked[member.session].count("getData"))
    assert asked == [4, 3, 3, 3]
    assert a.terms
