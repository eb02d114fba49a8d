"""Waiting: walk down the queue as those ahead go."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.joining import take_place
from zkelect.core.moves import doom, grant, stand
from zkelect.core.state import State, Step

LONG_WALK: Final = 8
"""So many predecessors gone in a row make a new roll cheaper than walking on."""


def check_owner(s: State, event: ev.Watched) -> Step:
    if not s.is_own(event.node) or event.owner == s.session_id:
        return s, ()
    return stand(s)


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
        return s, ()
    if not left:
        return grant(s, event)
    reread = (ev.ReadRoll(stamp=s.stamp),) if s.walked % LONG_WALK == 0 else ()
    return s, (ev.Watch(stamp=s.stamp, node=left[-1].node), *reread)


def rearm(s: State, event: ev.Changed) -> Step:
    if s.is_own(event.node) or (s.ahead and s.ahead[-1].node == event.node):
        return s, (ev.Watch(stamp=s.stamp, node=event.node),)
    return s, ()


def roll_waiting(s: State, event: ev.Rolled) -> Step:
    if event.record != s.record:
        return record_waiting(s, event)
    return take_place(s, s.dialect.read(event.children), event)


def reread(s: State, _: ev.RollDue) -> Step:
    return s, (ev.ReadRoll(stamp=s.stamp),)


def prove(s: State, event: ev.Proven) -> Step:
    return grant(s, event)


def record_waiting(s: State, event: ev.Recorded | ev.Rolled) -> Step:
    """Another lineage or generation: the tokens we would get are of another history."""
    if event.record == s.record:
        return evolve(s, record=event.record), ()
    own = s.node
    assert own is not None  # a waiting candidate has a znode
    s, deletion = doom(evolve(s, node=None), {own.node})
    s, effects = stand(s)
    return s, (*deletion, *effects)
