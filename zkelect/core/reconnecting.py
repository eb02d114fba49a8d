"""What the session says: opened, suspended, resumed, expired."""

from __future__ import annotations

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.events import Reason
from zkelect.core.moves import (
    deletions,
    depose,
    finish_if_left,
    forget_session,
    look_if_next,
    recover,
    stand,
    watches,
    withdrawal,
)
from zkelect.core.state import Phase, State, Step


def suspend(s: State, _: ev.SessionSuspended) -> Step:
    return evolve(s, connected=False), ()


def expire(s: State, _: ev.SessionExpired) -> Step:
    return forget_session(s), ()


def expire_candidate(s: State, _: ev.SessionExpired) -> Step:
    return evolve(forget_session(s), phase=Phase.JOINING), ()


def expire_leader(s: State, _: ev.SessionExpired) -> Step:
    s, effects = depose(s, Reason.EXPIRED)
    return forget_session(s), effects


def expire_leaving(s: State, _: ev.SessionExpired) -> Step:
    return finish_if_left(forget_session(s))


def open_session(s: State, event: ev.SessionOpened) -> Step:
    return evolve(s, session_id=event.session_id, connected=True, uuid=event.uuid), ()


def open_joining(s: State, event: ev.SessionOpened) -> Step:
    """Rest first: a crowd whose sessions ended together must not come back together."""
    s, _ = open_session(s, event)
    return s, (ev.Rest(stamp=s.stamp),)


def resume(s: State, _: ev.SessionResumed) -> Step:
    s = evolve(s, connected=True)
    return s, deletions(s)


def resume_joining(s: State, _: ev.SessionResumed) -> Step:
    s = evolve(s, connected=True)
    first = deletions(s)
    s, effects = find_place_again(s)
    return s, (*first, *effects)


def find_place_again(s: State) -> Step:
    if s.sent:
        return recover(s)
    if s.node is None:
        return stand(s)
    return s, (ev.ReadRoll(stamp=s.stamp),)


def resume_watching(s: State, _: ev.SessionResumed) -> Step:
    """The reconnect used up every watch; set anew, each tells what was missed."""
    s, looks = look_if_next(evolve(s, connected=True))
    return s, (*watches(s), *looks, *deletions(s))


def resume_leaving(s: State, _: ev.SessionResumed) -> Step:
    s = evolve(s, connected=True)
    first = (*withdrawal(s), *deletions(s))
    s, effects = recover(s) if s.sent else (s, ())
    return s, (*first, *effects)
