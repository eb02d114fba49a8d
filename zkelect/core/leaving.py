"""Leaving: nothing of ours may stay behind."""

from __future__ import annotations

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.moves import doom, doom_strays, finish_if_left, go
from zkelect.core.state import State, Step


def begin_later(s: State, event: ev.Campaigned) -> Step:
    """Our old znode first, so that we never queue behind an orphan of our own."""
    return evolve(s, again=(event.campaign, event.uuid)), ()


def cancel_later(s: State, event: ev.Cancelled) -> Step:
    """A campaign that never began is over with the one it waited for."""
    if s.again is None or s.again[0] != event.campaign:
        return s, ()
    return evolve(s, campaign=event.campaign, again=None), ()


def let_go(s: State, _: ev.Returned) -> Step:
    if s.released:  # the withdrawal is under way already
        return finish_if_left(evolve(s, term=None))
    return go(evolve(s, term=None))


def release(s: State, _: ev.GraceEnded) -> Step:
    return go(evolve(s, released=True))


def disown(s: State, event: ev.Created) -> Step:
    """A create of ours was answered when nobody waited for it any more (CURATOR-504)."""
    if event.owner != s.session_id or event.node in s.found:
        return s, ()
    return doom(s, {event.node})


def left_after_all(s: State, event: ev.Created) -> Step:
    """We were about to leave when our create was answered."""
    if not s.sent:
        return disown(s, event)
    return go(evolve(s, node=s.dialect.parse(event.node), sent=False))


def never_stood(s: State, _: ev.ParentMissing | ev.Refused) -> Step:
    if not s.sent:
        return s, ()
    return go(evolve(s, sent=False))


def refused_leaving(s: State, event: ev.Refused) -> Step:
    """A refused look tells nothing: the next link looks again, or the session ends."""
    if s.lost:
        return s, ()
    return never_stood(s, event)


def roll_leaving(s: State, event: ev.Rolled) -> Step:
    if not s.sent:
        return s, ()
    s, deletions = doom_strays(evolve(s, sent=False), s.dialect.read(event.children))
    s, more = finish_if_left(s)
    return s, (*deletions, *more)


def forget(s: State, event: ev.Deleted | ev.Vanished | ev.DeleteRefused) -> Step:
    """One znode less of ours; the machine is idle again when it was the last."""
    node = None if s.is_own(event.node) else s.node
    return finish_if_left(evolve(s, node=node, doomed=s.doomed - {event.node}))


def forget_stray(s: State, event: ev.Deleted | ev.DeleteRefused) -> Step:
    return evolve(s, doomed=s.doomed - {event.node}), ()


def undeletable(s: State, event: ev.DeleteRefused) -> Step:
    fail = ev.Fail(stamp=s.stamp, campaign=s.campaign, error=event.error)
    s, effects = forget(s, event)
    return s, (fail, *effects)
