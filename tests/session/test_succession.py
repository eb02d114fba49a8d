"""The leader's side of a switchover: what it writes, when it resigns, when it goes on."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest
from attrs import evolve
from session.troupe import PATH, Member, T, Troupe

from zkelect.core.handover import Handover, HandoverState, decode_handover, encode_handover
from zkelect.core.pause import Pause
from zkelect.core.record import decode_record, encode_record
from zkelect.core.znodes import KAZOO
from zkelect.session.candidacy import Candidacy
from zkelect.testing.fake_machine import Move

if TYPE_CHECKING:
    from zkelect.testing import FakeEnsemble

PAGE: Final = f"{PATH}.zkelect/switchover"
KAZOOS: Final = KAZOO.prefix("0123456789ab4def8123456789abcdef")
IDS = count()


def node_of(member: Member) -> str:
    node = member.election._candidacy.node
    assert node is not None
    return node


def page(fake: FakeEnsemble) -> Handover:
    znode = fake.znode(PAGE)
    assert znode is not None
    found = decode_handover(znode.data, znode.version)
    assert found is not None
    return found


def ask(fake: FakeEnsemble, whom: Member, whose: Member, **changes: Any) -> Handover:
    """Write to a leader what an operator would, in favour of another candidate."""
    handover = Handover(
        id=str(next(IDS)),
        target=node_of(whose),
        name=whose.election.name,
        leader=node_of(whom),
        token=whom.terms[-1].token,
        timeout=10 * T,
        by="root@here",
    )
    handover = evolve(handover, **changes)
    if fake.znode(PAGE) is None:
        fake.create(PAGE)
    fake.put(PAGE, encode_handover(handover))
    touch(fake, node_of(whom))
    return handover


def touch(fake: FakeEnsemble, node: str) -> None:
    znode = fake.znode(f"{PATH}/{node}")
    assert znode is not None
    fake.put(f"{PATH}/{node}", znode.data)


def names(fake: FakeEnsemble) -> list[str]:
    """Who stands, in order."""
    nodes = sorted(fake.children(PATH), key=lambda node: node[-10:])
    found = (fake.znode(f"{PATH}/{node}") for node in nodes)
    return [znode.data.decode() for znode in found if znode is not None]


def state(fake: FakeEnsemble) -> HandoverState:
    return page(fake).state


# --- how it goes -------------------------------------------------------------------------------


def test_h49_those_between_step_back_and_the_leader_resigns_when_the_target_is_next(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a, b, c, d = troupe.lead("A"), troupe.queue("B"), troupe.queue("C"), troupe.queue("D")
    ask(fake, a, d)
    troupe.until(lambda: d.terms, "D leads")
    assert a.ends == ["switched-over"]
    assert state(fake) is HandoverState.DONE
    fake.advance(1.0)
    assert names(fake) == ["D", "B", "C", "A"]
    assert d.terms[0].token > a.terms[0].token
    assert not b.terms
    assert not c.terms


def test_while_nobody_asks_it_costs_nothing(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    asked = {each: list(troupe.asked[each.session]) for each in (a, b)}
    fake.advance(2 * T)
    for each in (a, b):
        assert set(troupe.asked[each.session][len(asked[each]) :]) == {"multi"}  # probes
    assert fake.znode(PAGE) is None


def test_a_target_right_behind_needs_nobody_to_move(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    node = node_of(b)
    ask(fake, a, b)
    troupe.until(lambda: b.terms, "B leads")
    assert node_of(b) == node


def test_a_target_of_low_priority_does_not_step_back_for_a_higher_one(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a, _, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    troupe.queue("D", priority=7)
    ask(fake, a, c)
    troupe.until(lambda: c.terms, "C leads")
    assert a.ends == ["switched-over"]


# --- how it does not come about ----------------------------------------------------------------


def withdrawn(troupe: Troupe, fake: FakeEnsemble, a: Member) -> str:
    """Wait until the leader has called it off, and go on for a while."""
    troupe.until(lambda: state(fake) is HandoverState.WITHDRAWN, "it is withdrawn")
    fake.advance(2 * T)
    assert a.ends == []
    assert a.phase.value == "leading"
    return page(fake).reason


def test_who_does_not_step_back_in_time_is_named(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    fake.hold(b.session, Move.EVENT)  # B hears of nothing
    asked = ask(fake, a, c, timeout=T / 2)
    began = fake.clock.now
    reason = withdrawn(troupe, fake, a)
    assert node_of(b) in reason
    assert "within 1 s" in reason
    assert fake.clock.now - began >= asked.timeout


def test_a_target_that_leaves_midway_ends_it(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    fake.hold(b.session, Move.EVENT)
    ask(fake, a, c, timeout=1000 * T)
    troupe.until(lambda: state(fake) is HandoverState.DRIVEN, "A drives")
    c.election.stop()
    assert withdrawn(troupe, fake, a) == "'C' has left the queue"  # B has not moved yet
    fake.release(b.session)
    fake.advance(1.0)


def test_h49_a_peer_of_another_library_that_joins_midway_ends_it(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    fake.hold(b.session, Move.EVENT)
    ask(fake, a, c)
    troupe.until(lambda: state(fake) is HandoverState.DRIVEN, "A drives")
    fake.create(f"{PATH}/{KAZOOS}0000000099")
    fake.release(b.session)
    assert "does not step back" in withdrawn(troupe, fake, a)


def test_a_pause_ends_it_for_nobody_would_lead_after(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    fake.hold(b.session, Move.EVENT)
    ask(fake, a, c)
    troupe.until(lambda: state(fake) is HandoverState.DRIVEN, "A drives")
    znode = fake.znode(f"{PATH}.zkelect")
    assert znode is not None
    record = decode_record(znode.data, znode.version)
    assert record is not None
    fake.put(f"{PATH}.zkelect", encode_record(evolve(record, paused=Pause(by="K"))))
    fake.release(b.session)
    assert "paused by 'K'" in withdrawn(troupe, fake, a)


def test_whoever_asked_may_call_it_off(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    fake.hold(b.session, Move.EVENT)
    ask(fake, a, c, timeout=T / 2)
    troupe.until(lambda: state(fake) is HandoverState.DRIVEN, "A drives")
    off = evolve(page(fake), state=HandoverState.WITHDRAWN, reason="K stopped waiting")
    fake.put(PAGE, encode_handover(off))
    assert withdrawn(troupe, fake, a) == "K stopped waiting"  # and not that B did not move
    fake.release(b.session)
    fake.advance(1.0)
    assert names(fake) == ["A", "B", "C"]


def test_what_is_asked_of_another_leader_is_not_heeded(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    ask(fake, a, b, leader=node_of(b))
    fake.advance(4 * T)
    assert state(fake) is HandoverState.ASKED
    assert a.ends == []


def test_what_was_driven_before_we_led_is_not_heeded(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    ask(fake, a, b, state=HandoverState.DRIVEN)  # not by A: it has never heard of it
    fake.advance(4 * T)
    assert a.ends == []


def test_a_second_one_is_driven_after_the_first_was_withdrawn(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    ask(fake, a, c, timeout=0.0)
    withdrawn(troupe, fake, a)
    ask(fake, a, c)
    troupe.until(lambda: c.terms, "C leads")
    assert not b.terms


# --- lost links and lost answers ---------------------------------------------------------------


@pytest.mark.parametrize("nth", range(1, 7))
def test_whichever_answer_of_the_leader_is_lost_it_goes_on(
    troupe: Troupe, fake: FakeEnsemble, nth: int
) -> None:
    """Writes whose outcome is unknown are looked at again, and never done twice."""
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    ask(fake, a, c)
    fake.lose_reply(a.session, "multi", nth)
    troupe.until(lambda: c.terms, "C leads")
    assert len(a.ends) == 1
    assert c.terms[0].token > a.terms[0].token
    assert not b.terms


def test_a_leader_that_was_away_at_the_deadline_calls_it_off_when_it_is_back(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a, b, c = troupe.lead("A"), troupe.queue("B"), troupe.queue("C")
    fake.hold(b.session, Move.EVENT)
    ask(fake, a, c, timeout=T / 8)
    troupe.until(lambda: state(fake) is HandoverState.DRIVEN, "A drives")
    fake.drop(a.session)
    fake.advance(T / 8)
    assert "did not step back" in withdrawn(troupe, fake, a)


def test_a_body_that_does_not_return_keeps_the_target_waiting_only_for_its_lease(
    troupe: Troupe, fake: FakeEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    monkeypatch.setattr(Candidacy, "returned", lambda *_: None)
    ask(fake, a, b)
    troupe.until(lambda: b.terms, "B leads")
    assert a.terms[0].remaining() == 0.0
    monkeypatch.undo()
    a.election._candidacy.returned(a.terms[0])
