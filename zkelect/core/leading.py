"""Preparing and leading: the term, and its one end."""

from __future__ import annotations

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.events import Reason
from zkelect.core.leaving import let_go
from zkelect.core.moves import depose, doom_strays
from zkelect.core.state import Phase, State, Step


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
    if not s.is_own(event.node) or event.owner == s.session_id:
        return s, ()
    return depose(evolve(s, node=None), Reason.EVICTED)


def roll_leading(s: State, event: ev.Rolled) -> Step:
    """Only our own absence and another record count: a late roll never undoes a grant."""
    roll = s.dialect.read(event.children)
    if s.node is not None and roll.find(s.node.node) is None:
        return depose(evolve(s, node=None), Reason.EVICTED)
    if event.record != s.record:
        return depose(s, Reason.RECORD_CHANGED)
    return doom_strays(s, roll)


def record_leading(s: State, event: ev.Recorded) -> Step:
    if event.record == s.record:
        return evolve(s, record=event.record), ()
    return depose(s, Reason.RECORD_CHANGED)
