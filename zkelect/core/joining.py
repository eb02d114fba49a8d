"""Joining: make the candidate, find its place, recover from lost replies."""

from __future__ import annotations

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.moves import (
    doom,
    doom_strays,
    give_up,
    grant,
    leave,
    look_if_next,
    stand,
    watches,
)
from zkelect.core.state import Phase, State, Step
from zkelect.core.yielding import step_back
from zkelect.core.znodes import Roll
from zkelect.errors import SequenceExhausted


def begin(s: State, event: ev.Campaigned) -> Step:
    return stand(evolve(s, campaign=event.campaign, uuid=event.uuid))


def cancel(s: State, event: ev.Cancelled) -> Step:
    if event.campaign != s.campaign:
        return s, ()
    return leave(s)


def adopt(s: State, event: ev.Created) -> Step:
    entry = s.dialect.parse(event.node)
    if entry is None or event.owner != s.session_id:
        return s, ()
    s = evolve(s, node=entry, czxid=event.czxid, sent=False)
    if entry.node in s.doomed:  # a parent made anew counts from 0 again
        s = evolve(s, doomed=s.doomed - {entry.node})
    if entry.exhausted:
        return give_up(s, SequenceExhausted(s.path, entry.node))
    return s, ()


def make_parent(s: State, _: ev.ParentMissing) -> Step:
    if not s.sent:
        return s, ()
    return evolve(s, sent=False), (ev.MakeParent(stamp=s.stamp),)


def stand_again(s: State, _: ev.ParentMade | ev.Rested) -> Step:
    if s.sent or s.node is not None:
        return s, ()
    return stand(s)


def refuse(s: State, event: ev.Refused) -> Step:
    """Give up; but a refused look leaves open whether a lost create was done."""
    return give_up(evolve(s, sent=s.sent and s.lost), event.error)


def read_after_barrier(s: State, _: ev.Committed) -> Step:
    if not s.sent:
        return s, ()
    return s, (ev.ReadRoll(stamp=s.stamp),)


def roll_joining(s: State, event: ev.Rolled) -> Step:
    roll = s.dialect.read(event.children)
    if s.node is not None:
        return take_place(s, roll, event)
    if s.sent:
        return sift(s, roll)
    return s, ()


def sift(s: State, roll: Roll) -> Step:
    """After a lost reply: none, one or several of ours may be there."""
    ours = tuple(entry.node for entry in roll.of(s.uuid) if entry.node not in s.doomed)
    if not ours:
        return stand(s)
    looks = tuple(ev.Watch(stamp=s.stamp, node=node) for node in ours)
    return evolve(s, suspects=frozenset(ours), adopted=()), looks


def inspect(s: State, event: ev.Watched) -> Step:
    entry = s.dialect.parse(event.node)
    if event.node not in s.suspects or entry is None:
        return s, ()
    if event.owner == s.session_id:
        s = evolve(s, adopted=(*s.adopted, (entry, event.czxid)))
    return settle(evolve(s, suspects=s.suspects - {event.node}))


def vanish_joining(s: State, event: ev.Vanished) -> Step:
    if s.is_own(event.node):
        return stand(s)
    if event.node in s.suspects:
        return settle(evolve(s, suspects=s.suspects - {event.node}))
    return s, ()


def settle(s: State) -> Step:
    """Every suspect has answered: keep the lowest that is this session's."""
    if s.suspects:
        return s, ()
    if not s.adopted:
        return stand(s)
    own, czxid = min(s.adopted, key=lambda found: found[0].sequence)
    s, strays = doom(evolve(s, node=own, czxid=czxid, sent=False), s.found)
    return evolve(s, adopted=()), (*strays, ev.ReadRoll(stamp=s.stamp))


def take_place(s: State, roll: Roll, event: ev.Rolled) -> Step:
    """Our create was answered and the roll read behind it: find who is ahead."""
    own = s.node
    if own is None or roll.find(own.node) is None:
        return stand(s)
    if event.record is None:
        s, deletion = doom(evolve(s, phase=Phase.JOINING, node=None), {own.node})
        return s, (*deletion, ev.MakeParent(stamp=s.stamp))
    if s.is_evicted_by(event.record):
        return step_back(s)
    s, strays = doom_strays(s, roll)
    if (worn := roll.exhausted) is not None:
        s, effects = give_up(s, SequenceExhausted(s.path, worn.node))
        return s, (*strays, *effects)
    before, was_waiting, was_next = s.ahead[-1:], s.phase is Phase.WAITING, s.next
    s = evolve(s, phase=Phase.WAITING, ahead=roll.ahead_of(own), walked=0, record=event.record)
    s = evolve(s, outranked=roll.preferred_behind(own) is not None)
    to_watch = watches(s)
    if was_waiting:
        to_watch = () if s.ahead[-1:] == before else to_watch[1:]
    s, granted = grant(s, event)
    watched = was_next and not to_watch
    s, looks = (s, ()) if watched else look_if_next(s)
    return s, (*to_watch, *strays, *granted, *looks)
