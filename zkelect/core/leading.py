"""Preparing and leading: the term, and its one end."""

from __future__ import annotations

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.events import Effect, Reason
from zkelect.core.leaving import let_go
from zkelect.core.moves import depose, doom_strays, look
from zkelect.core.state import Phase, State, Step
from zkelect.core.znodes import Roll


def serve(s: State, event: ev.Prepared) -> Step:
    return evolve(s, phase=Phase.LEADING), (ev.Serve(stamp=event.term),)


def end(s: State, event: ev.TermEnded) -> Step:
    return depose(s, event.reason)


def return_early(s: State, event: ev.Returned) -> Step:
    """The body is over while the term is not: that is how one resigns."""
    s, effects = depose(s, Reason.RESIGNED)
    s, more = let_go(s, event)
    return s, (*effects, *more)


def evict(s: State, event: ev.Vanished) -> Step:
    if not s.is_own(event.node):
        return s, ()
    return depose(evolve(s, node=None), Reason.EVICTED)


def check_own(s: State, event: ev.Watched) -> Step:
    if not s.is_own(event.node):
        return s, ()
    if event.owner != s.session_id:
        return depose(evolve(s, node=None), Reason.EVICTED)
    return wake(s) if event.touched else (s, ())


def wake(s: State) -> Step:
    """An operator has written our znode anew: to hand over, or to go."""
    s, looks = look(s)
    return s, (ev.ReadHandover(stamp=s.stamp), *looks)


def roll_leading(s: State, event: ev.Rolled) -> Step:
    """Only our own absence and another record count: a late roll never undoes a grant."""
    roll = s.dialect.read(event.children)
    if s.node is not None and roll.find(s.node.node) is None:
        return depose(evolve(s, node=None), Reason.EVICTED)
    if not s.is_same_history(event.record):
        return depose(s, Reason.RECORD_CHANGED)
    if s.is_evicted_by(event.record):
        return depose(evolve(s, record=event.record), Reason.EVICTED)
    s, deletions = doom_strays(s, roll)
    return s, (*deletions, *compare(s, roll))


def compare(s: State, roll: Roll) -> tuple[Effect, ...]:
    """Only the heir counts: whoever else has a higher priority becomes it by and by."""
    if not s.yields or s.node is None or s.term is None:
        return ()
    if s.record is None or s.record.paused is not None:  # nobody would lead after us
        return ()
    preferred = roll.preferred_behind(s.node)
    if preferred is None or preferred.priority > roll.behind(s.node)[0].priority:
        return ()
    return (ev.Outranked(stamp=s.term),)


def hand_over(s: State, event: ev.HandoverRead) -> Step:
    """What is written there of another leader is not meant for us."""
    handover, term = event.handover, s.term
    assert term is not None  # a leader has a term
    if handover is None or not s.is_own(handover.leader):
        return s, ()
    return s, (ev.HandOver(stamp=term, handover=handover),)


def record_leading(s: State, event: ev.Recorded) -> Step:
    """A pause is nothing to a leader: it stays. Who is asked to go, goes."""
    if not s.is_same_history(event.record):
        return depose(s, Reason.RECORD_CHANGED)
    s = evolve(s, record=event.record, looking=False)
    return depose(s, Reason.EVICTED) if s.is_evicted_by(event.record) else (s, ())
