"""Waiting: walk down the queue as those ahead go."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.joining import take_place
from zkelect.core.moves import grant, look, look_if_next, stand
from zkelect.core.state import State, Step
from zkelect.core.yielding import look_around, step_back, yields_to

LONG_WALK: Final = 8
"""So many predecessors gone in a row make a new roll cheaper than walking on."""


def check_owner(s: State, event: ev.Watched) -> Step:
    if not s.is_own(event.node):
        return look_around(s, event)
    return (s, ()) if event.owner == s.session_id else stand(s)


def walk(s: State, event: ev.Vanished) -> Step:
    """Somebody ahead is gone: walk down the known roll, one watch at a time."""
    if s.is_own(event.node):
        return stand(s)
    left = tuple(entry for entry in s.ahead if entry.node != event.node)
    if left == s.ahead:
        return s, ()
    nearest_gone = s.ahead[-1].node == event.node
    s = evolve(s, ahead=left, walked=s.walked + 1)
    if not nearest_gone:
        return look_if_next(s)
    if not left:
        return grant(s, event)
    s, looks = look_if_next(s)
    reread = (ev.ReadRoll(stamp=s.stamp),) if s.walked % LONG_WALK == 0 else ()
    return s, (ev.Watch(stamp=s.stamp, node=left[-1].node), *looks, *reread)


def rearm(s: State, event: ev.Changed) -> Step:
    watch = ev.Watch(stamp=s.stamp, node=event.node)
    if s.is_own(event.node):
        return s, (watch,)
    if not s.ahead or s.ahead[-1].node != event.node:
        return s, ()
    s, looks = look_if_next(s)
    return s, (watch, *looks)


def roll_waiting(s: State, event: ev.Rolled) -> Step:
    if not s.is_same_history(event.record):
        return step_back(s)
    roll = s.dialect.read(event.children)
    return step_back(s) if yields_to(s, roll) else take_place(s, roll, event)


def reread(s: State, _: ev.RollDue) -> Step:
    return s, (ev.ReadRoll(stamp=s.stamp),)


def prove(s: State, event: ev.Proven) -> Step:
    return grant(s, event)


def touch(s: State, _: ev.RecordTouched) -> Step:
    return look(s)


def record_waiting(s: State, event: ev.Recorded) -> Step:
    """Another lineage or generation: the tokens we would get are of another history."""
    if not s.is_same_history(event.record) or s.is_evicted_by(event.record):
        return step_back(s)
    return grant(evolve(s, record=event.record, looking=False), event)
