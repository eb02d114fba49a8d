"""A crowd of candidates on one session: how they come back when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from session.troupe import TICK, T, client_of

import zkelect
from zkelect.session.gateway import WINDOW
from zkelect.testing import FakeEnsemble, expire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.session.session import Session
    from zkelect.testing.fake_server import Question

CROWD: Final = 320


class Wire:
    """What a session asks: the instants of its joins, and how many requests are under way."""

    def __init__(self, fake: FakeEnsemble, session: Session, patch: pytest.MonkeyPatch) -> None:
        self.joins: list[float] = []
        self.most = 0
        client = client_of(session)
        send = client.send

        def note(question: Question, **options: Any) -> Any:
            if question.name == "create2":
                self.joins.append(fake.clock.now)
            self.most = max(self.most, session.gateway.under_way)
            return send(question, **options)

        patch.setattr(client, "send", note)


@pytest.fixture
def session(fake: FakeEnsemble) -> Iterator[Session]:
    with fake.connect(session_timeout=T, tick_time=TICK) as opened:
        yield opened


@pytest.fixture
def crowd(fake: FakeEnsemble, session: Session) -> list[zkelect.Election]:
    """All of them lead."""
    elections = [zkelect.Election(session, f"/many/{number}") for number in range(CROWD)]
    for number, election in enumerate(elections):
        election.start()
        if number % WINDOW == 0:
            fake.settle()
    fake.advance(T)
    assert {election.phase for election in elections} == {zkelect.Phase.LEADING}
    return elections


def test_who_lost_their_session_together_come_back_in_waves(
    fake: FakeEnsemble,
    session: Session,
    crowd: list[zkelect.Election],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not one joins before its wave comes, and the last one within a session timeout."""
    wave = 16
    monkeypatch.setattr("zkelect.core.waves.WAVE", wave)
    wire = Wire(fake, session, monkeypatch)
    lost = fake.clock.now
    expire(session)
    fake.advance(2 * T)
    assert {election.phase for election in crowd} == {zkelect.Phase.LEADING}
    assert len(wire.joins) == CROWD
    assert max(wire.joins) < lost + T + TICK
    waves = CROWD // wave
    for number in range(1, waves):
        come = [joined for joined in wire.joins if joined < lost + number * T / waves]
        assert len(come) <= number * wave
    assert wire.most <= WINDOW + 1  # and the probe


def test_joins_that_wait_for_their_turn_are_not_kept_for_the_next_connection(
    fake: FakeEnsemble, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is asked for once on the new one; none is left from the old one."""
    elections = [zkelect.Election(session, f"/{number}") for number in range(WINDOW)]
    for election in elections:
        election.start()
    wire = Wire(fake, session, monkeypatch)
    fake.drop(session)
    fake.advance(T)
    assert {election.phase for election in elections} == {zkelect.Phase.LEADING}
    candidates = [fake.children(f"/{number}") for number in range(WINDOW)]
    assert {len(candidate) for candidate in candidates} == {1}
    assert wire.most <= WINDOW + 1
