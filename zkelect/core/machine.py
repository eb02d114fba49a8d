"""One candidate's life, as one table.

A campaign goes down the phases; every loss leads back to joining or out through
leaving::

    idle → joining → waiting → preparing → leading → leaving → idle

Rules that hold in every row:

* Grant only when our own znode was seen with this session as its owner, nobody is
  ahead, and the lease is valid at that very step. A candidate whose predecessor was
  the first becomes leader by its deletion alone, without a read: a deletion event is
  a committed fact, and no lower number can appear while our znode keeps the parent alive.
* An answer whose stamp is not the present one changes nothing; if it is a znode that
  came to be after all, that znode is deleted.
* Nobody is granted while the record says that the election is paused, or may say so: a
  change that is heard of counts until it is read, and only the latest read counts.
* Nothing is asked of the servers while the link is down. The new link asks for all that
  is still wanted: the place of a lost create, watches, withdrawals, deletions.
* ``Vanished`` may come before the reply that set its watch: kazoo hands events and
  replies over on two threads. A late reply never undoes a grant.
* A term ends exactly once. Its znode stays while its body may rightfully work: until
  it returns, or, when the leader did not resign by itself, until the lease it could
  still count on has run out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event
from zkelect.core.joining import (
    adopt,
    begin,
    cancel,
    inspect,
    make_parent,
    read_after_barrier,
    refuse,
    roll_joining,
    stand_again,
    vanish_joining,
)
from zkelect.core.leading import (
    check_own,
    end,
    evict,
    hand_over,
    record_leading,
    return_early,
    roll_leading,
    serve,
)
from zkelect.core.leaving import (
    begin_later,
    cancel_later,
    disown,
    forget,
    forget_stray,
    left_after_all,
    let_go,
    never_stood,
    refused_leaving,
    release,
    roll_leaving,
    undeletable,
)
from zkelect.core.reconnecting import (
    expire,
    expire_candidate,
    expire_leader,
    expire_leaving,
    open_joining,
    open_session,
    resume,
    resume_joining,
    resume_leaving,
    resume_watching,
    suspend,
)
from zkelect.core.state import Phase, State, Step
from zkelect.core.waiting import (
    check_owner,
    prove,
    rearm,
    record_waiting,
    reread,
    roll_waiting,
    touch,
    walk,
)
from zkelect.core.yielding import make_way

__all__ = ["TABLE", "Machine", "step"]


class Machine:
    """One candidate: feed it events, do what it says.

    :param state: where to begin; an idle one for the path.
    """

    __slots__ = ("state",)

    def __init__(self, state: State) -> None:
        self.state: State = state

    def step(self, event: Event) -> tuple[Effect, ...]:
        """Take one event in and return what to do now, in order."""
        self.state, effects = step(self.state, event)
        return effects


def step(state: State, event: Event) -> Step:
    """Return the next state and the effects."""
    state, effects = _react(state, event)
    if state.connected:
        return state, effects
    return state, tuple(effect for effect in effects if not isinstance(effect, ev.Request))


def _react(state: State, event: Event) -> Step:
    """Stale events first, then the table."""
    if isinstance(event, ev.Recorded) and event.look != state.look:
        return state, ()
    if isinstance(event, ev.TermEvent) and event.term != state.term:
        return state, ()
    if isinstance(event, ev.Answer) and event.stamp != state.stamp:
        return _stale(state, event)
    if isinstance(event, ev.SessionOpened) and state.session_id is not None:
        return _swap(state, event)
    return _look_up(state, event)


def _look_up(s: State, event: Event) -> Step:
    return TABLE[type(event)][_COLUMN[s.phase]](s, event)


def _swap(s: State, event: ev.SessionOpened) -> Step:
    """Another session without a word about the old one: it is over (ClickHouse #116690)."""
    s, lost = step(s, ev.SessionExpired())
    s, effects = step(s, event)
    return s, (*lost, *effects)


def _stale(s: State, event: ev.Answer) -> Step:
    """An answer of an earlier try: only what became of our znodes still counts."""
    if isinstance(event, ev.Created):
        return disown(s, event)
    if isinstance(event, ev.Deleted | ev.DeleteRefused):
        return _look_up(s, event)
    return s, ()


def _(s: State, _event: Event) -> Step:
    """Nothing to do: the event says nothing new in this phase."""
    return s, ()


Handler = Callable[[State, Any], Step]

_COLUMN: Final = {phase: column for column, phase in enumerate(Phase)}

# fmt: off
TABLE: Final[dict[type[Event], tuple[Handler, ...]]] = {
    #                     idle           joining              waiting            preparing         leading           leaving
    ev.Campaigned:       (begin,         _,                   _,                 _,                _,                begin_later),
    ev.Cancelled:        (_,             cancel,              cancel,            _,                _,                cancel_later),
    ev.SessionOpened:    (open_session,  open_joining,        open_session,      open_session,     open_session,     open_session),
    ev.SessionSuspended: (suspend,       suspend,             suspend,           suspend,          suspend,          suspend),
    ev.SessionResumed:   (resume,        resume_joining,      resume_watching,   resume_watching,  resume_watching,  resume_leaving),
    ev.SessionExpired:   (expire,        expire,              expire_candidate,  expire_leader,    expire_leader,    expire_leaving),
    ev.Prepared:         (_,             _,                   _,                 serve,            _,                _),
    ev.TermEnded:        (_,             _,                   _,                 end,              end,              _),
    ev.Returned:         (_,             _,                   _,                 return_early,     return_early,     let_go),
    ev.GraceEnded:       (_,             _,                   _,                 _,                _,                release),
    ev.Created:          (disown,        adopt,               disown,            disown,           disown,           left_after_all),
    ev.ParentMissing:    (_,             make_parent,         _,                 _,                _,                never_stood),
    ev.ParentMade:       (_,             stand_again,         _,                 _,                _,                _),
    ev.Refused:          (_,             refuse,              refuse,            _,                _,                refused_leaving),
    ev.Committed:        (_,             read_after_barrier,  _,                 _,                _,                read_after_barrier),
    ev.Rolled:           (_,             roll_joining,        roll_waiting,      roll_leading,     roll_leading,     roll_leaving),
    ev.Watched:          (_,             inspect,             check_owner,       check_own,        check_own,        _),
    ev.Vanished:         (_,             vanish_joining,      walk,              evict,            evict,            forget),
    ev.Changed:          (_,             _,                   rearm,             rearm,            rearm,            _),
    ev.Deleted:          (forget_stray,  forget_stray,        forget_stray,      forget_stray,     forget_stray,     forget),
    ev.DeleteRefused:    (forget_stray,  forget_stray,        forget_stray,      forget_stray,     forget_stray,     undeletable),
    ev.Rested:           (_,             stand_again,         _,                 _,                _,                _),
    ev.Proven:           (_,             _,                   prove,             _,                _,                _),
    ev.RollDue:          (_,             _,                   reread,            reread,           reread,           _),
    ev.RecordTouched:    (_,             _,                   touch,             touch,            touch,            _),
    ev.Recorded:         (_,             _,                   record_waiting,    record_leading,   record_leading,   _),
    ev.HandoverRead:     (_,             _,                   make_way,          hand_over,        hand_over,        _),
}
# fmt: on
