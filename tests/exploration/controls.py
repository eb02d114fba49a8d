"""Broken machines: each is the real one with one mistake that somebody would make.

An exploration that does not break every one of them is worth nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from attrs import evolve

from exploration.search import Limits
from zkelect.core import events as ev
from zkelect.core import (
    joining,
    leading,
    leaving,
    machine,
    moves,
    reconnecting,
    waiting,
    yielding,
)
from zkelect.core.events import Effect, Event, Reason
from zkelect.core.state import Phase, State, Step
from zkelect.core.znodes import Roll

__all__ = ["CONTROLS", "Control", "broken"]

Function = Callable[..., Any]


class Control(NamedTuple):
    """A broken machine.

    :ivar promise: what it breaks first. :ivar mistakes: what is right, and what is wrong instead.
    :ivar limits: where to look for it.
    """

    promise: str
    mistakes: tuple[tuple[Function, Function], ...]
    limits: Limits = Limits(worlds=100_000)


@contextmanager
def broken(control: Control) -> Iterator[None]:
    """Put wrong functions in the place of right ones, wherever the core uses them."""
    for right, wrong in control.mistakes:
        _replace(right, wrong)
    try:
        yield
    finally:
        for right, wrong in control.mistakes:
            _replace(wrong, right)


def _replace(old: Function, new: Function) -> None:
    for name, module in sys.modules.items():
        if name.startswith("zkelect.core."):
            for key, value in list(vars(module).items()):
                if value is old:
                    setattr(module, key, new)
    for kind, row in machine.TABLE.items():
        machine.TABLE[kind] = tuple(new if handler is old else handler for handler in row)


_inspect: Final = joining.inspect
_grant: Final = moves.grant
_recover: Final = moves.recover
_depose: Final = moves.depose
_let_go: Final = leaving.let_go
_record_leading: Final = leading.record_leading
_record_waiting: Final = waiting.record_waiting
_open_session: Final = reconnecting.open_session
_react: Final = machine._react

# --- the mistakes --------------------------------------------------------------------------


def adopt_whatever_is_found(s: State, event: ev.Watched) -> Step:
    """After a lost reply: whoever owns it, it has our uuid."""
    return _inspect(s, evolve(event, owner=s.session_id or event.owner))


def take_every_answer(s: State, event: ev.Answer) -> Step:
    """No stamps."""
    return machine._look_up(s, event)


def grant_without_lease(s: State, event: Event) -> Step:
    return _grant(s, evolve(event, leased=True))


def look_without_barrier(s: State) -> Step:
    s, _ = _recover(s)
    return s, (ev.ReadRoll(stamp=s.stamp),)


def create_again_blindly(s: State) -> Step:
    return moves.stand(s)


def pay_no_heed_to_the_own_znode(s: State, _: ev.Vanished) -> Step:
    return s, ()


def lead_when_the_nearest_is_gone(s: State, event: ev.Vanished) -> Step:
    if s.is_own(event.node):
        return moves.stand(s)
    if not s.ahead or s.ahead[-1].node != event.node:
        return s, ()
    return moves.grant(evolve(s, ahead=()), event)


def lead_whoever_is_gone(s: State, event: ev.Vanished) -> Step:
    return moves.grant(evolve(s, ahead=()), event)


def withdraw_under_the_body(s: State) -> tuple[Effect, ...]:
    if s.node is None:
        return ()
    return (ev.Withdraw(stamp=s.stamp, node=s.node.node, reason=s.reason),)


def give_no_grace(s: State, reason: Reason) -> Step:
    s, effects = _depose(s, reason)
    s, more = moves.go(evolve(s, released=True))
    return s, (*effects, *more)


def forget_the_znode(s: State) -> Step:
    """On cancel: it will expire some day."""
    return moves.finish_if_left(evolve(s, phase=Phase.LEAVING, node=None, sent=False))


def say_so_before_it_is_gone(s: State) -> Step:
    finish = ev.Finish(stamp=s.stamp, campaign=s.campaign)
    if s.term is not None or s.node is not None:
        return s, ()
    return evolve(s, phase=Phase.IDLE, again=None, sent=False, doomed=frozenset()), (finish,)


def take_a_new_session_for_the_old(s: State, event: ev.SessionOpened) -> Step:
    return reconnecting.open_session(s, event)


def keep_the_znode_of_the_old_session(s: State, _: ev.SessionExpired) -> Step:
    return evolve(s, session_id=None, connected=False), ()


def ask_without_a_link(state: State, event: Event) -> Step:
    return machine._react(state, event)


def trust_the_old_watches(s: State, _: ev.SessionResumed) -> Step:
    return evolve(s, connected=True), ()


def let_a_late_roll_undo_the_grant(s: State, event: ev.Rolled) -> Step:
    return waiting.roll_waiting(s, event)


def say_nothing_of_the_expiry(s: State, _: ev.SessionExpired) -> Step:
    return evolve(moves.forget_session(s), phase=Phase.LEAVING), ()


def end_a_term_twice(s: State, event: ev.Returned) -> Step:
    s, effects = _let_go(s, event)
    return s, (ev.Void(stamp=s.stamp, reason=Reason.RESIGNED), *effects)


def ask_for_a_deletion_only_once(_: State) -> tuple[Effect, ...]:
    return ()


def take_the_own_znode_for_a_stray(s: State, roll: Roll) -> Step:
    strays = [entry.node for entry in roll.of(s.uuid) if entry.node not in s.doomed]
    return s, tuple(ev.Delete(stamp=s.stamp, node=node) for node in strays)


def make_way_before_the_body_has(s: State, event: ev.Recorded) -> Step:
    """The record has changed, so the znode is worth nothing: it goes at once."""
    own = s.node
    s, effects = _record_leading(s, event)
    if own is None or s.leads:
        return s, effects
    s, deletion = moves.doom(evolve(s, node=None), {own.node})
    return s, (*effects, *deletion)


def heed_no_pause(s: State, event: Event) -> Step:
    record = s.record and evolve(s.record, paused=None)
    granted, grant = _grant(evolve(s, record=record, looking=False), event)
    return (granted, grant) if grant else (s, ())


def depose_for_a_pause(s: State, event: ev.Recorded) -> Step:
    """The record is not what it was."""
    return (s, ()) if event.record == s.record else _depose(s, Reason.RECORD_CHANGED)


def go_on_though_asked_to_go(s: State, event: ev.Recorded) -> Step:
    """It is the same election."""
    record = event.record and evolve(event.record, evictions=())
    s, effects = _record_leading(s, evolve(event, record=record))
    return (evolve(s, record=event.record) if s.leads else s), effects


def wait_though_asked_to_go(s: State, event: ev.Recorded) -> Step:
    record = event.record and evolve(event.record, evictions=())
    return _record_waiting(s, evolve(event, record=record))


def never_watch_the_record(s: State) -> Step:
    return s, ()


def look_before_the_watch(s: State, _: ev.SessionResumed) -> Step:
    """What the watch finds gone may have gone after a pause that the look was too early for."""
    s, looks = moves.look_if_next(evolve(s, connected=True))
    return s, (*looks, *moves.watches(s), *moves.deletions(s))


def take_every_look(s: State, event: Event) -> Step:
    """Whatever was heard since it was asked for."""
    return _react(s, evolve(event, look=s.look) if isinstance(event, ev.Recorded) else event)


def step_back_for_good(s: State) -> Step:
    """The znode goes, and no other one is made."""
    assert s.node is not None
    s, deletion = moves.doom(evolve(s, node=None, ahead=()), {s.node.node})
    return evolve(s, phase=Phase.JOINING), deletion


def keep_the_uuid(s: State, event: ev.SessionOpened) -> Step:
    """One for each campaign, whatever the session."""
    return _open_session(s, evolve(event, uuid=s.uuid or event.uuid))


# --- all of them ---------------------------------------------------------------------------


_PAUSES: Final = frozenset({"somebody pauses the election", "X loses its link"})
_EVICTIONS: Final = frozenset(
    {"an operator deletes X's znode, another being ahead", "somebody touches X's znode"}
)
_LINKS: Final = frozenset({"X loses its link", "X is given another session"})

CONTROLS: Final = {
    "none": Control("", ()),
    "take_every_answer": Control("stale", ((machine._stale, take_every_answer),)),
    "grant_without_lease": Control("granted", ((moves.grant, grant_without_lease),)),
    "look_without_barrier": Control("finished", ((moves.recover, look_without_barrier),)),
    "create_again_blindly": Control("cancelled", ((moves.recover, create_again_blindly),)),
    "pay_no_heed_to_the_own_znode": Control(
        "comes to rest", ((leading.evict, pay_no_heed_to_the_own_znode),)
    ),
    "lead_when_the_nearest_is_gone": Control(
        "granted", ((waiting.walk, lead_when_the_nearest_is_gone),), Limits(candidates=3)
    ),
    "lead_whoever_is_gone": Control("granted", ((waiting.walk, lead_whoever_is_gone),)),
    "withdraw_under_the_body": Control(
        "withdrawal", ((moves.withdrawal, withdraw_under_the_body),)
    ),
    "give_no_grace": Control("withdrawal", ((moves.depose, give_no_grace),)),
    "forget_the_znode": Control("finished", ((moves.leave, forget_the_znode),)),
    "say_so_before_it_is_gone": Control(
        "finished", ((moves.finish_if_left, say_so_before_it_is_gone),)
    ),
    "take_a_new_session_for_the_old": Control(
        "one leads", ((machine._swap, take_a_new_session_for_the_old),)
    ),
    "keep_the_znode_of_the_old_session": Control(
        "leaves", ((reconnecting.expire_candidate, keep_the_znode_of_the_old_session),)
    ),
    "ask_without_a_link": Control("asking", ((machine.step, ask_without_a_link),)),
    "trust_the_old_watches": Control(
        "one leads", ((reconnecting.resume_watching, trust_the_old_watches),)
    ),
    "let_a_late_roll_undo_the_grant": Control(
        "granted", ((leading.roll_leading, let_a_late_roll_undo_the_grant),)
    ),
    "say_nothing_of_the_expiry": Control(
        "void once", ((reconnecting.expire_leader, say_nothing_of_the_expiry),)
    ),
    "end_a_term_twice": Control("void once", ((leaving.let_go, end_a_term_twice),)),
    "ask_for_a_deletion_only_once": Control(
        "nothing left", ((moves.deletions, ask_for_a_deletion_only_once),)
    ),
    "take_the_own_znode_for_a_stray": Control(
        "own", ((moves.doom_strays, take_the_own_znode_for_a_stray),)
    ),
    "make_way_before_the_body_has": Control(
        "exclusive", ((leading.record_leading, make_way_before_the_body_has),)
    ),
    "heed_no_pause": Control("paused", ((moves.grant, heed_no_pause),)),
    "depose_for_a_pause": Control("stays", ((leading.record_leading, depose_for_a_pause),)),
    "go_on_though_asked_to_go": Control(
        "evicted", ((leading.record_leading, go_on_though_asked_to_go),)
    ),
    "wait_though_asked_to_go": Control(
        "comes to rest",
        ((waiting.record_waiting, wait_though_asked_to_go),),
        Limits(faults=2, kinds=_EVICTIONS),
    ),
    "never_watch_the_record": Control("paused", ((moves.look_if_next, never_watch_the_record),)),
    "look_before_the_watch": Control(
        "paused",
        ((reconnecting.resume_watching, look_before_the_watch),),
        Limits(faults=2, campaigns=1, kinds=_PAUSES),
    ),
    "take_every_look": Control(
        "paused", ((machine._react, take_every_look),), Limits(kinds=_PAUSES)
    ),
    "step_back_for_good": Control(
        "one leads",
        ((yielding.step_back, step_back_for_good),),
        Limits(kinds=frozenset({"X steps back"})),
    ),
    "adopt_whatever_is_found": Control(
        "granted",
        (
            (joining.inspect, adopt_whatever_is_found),
            (reconnecting.open_session, keep_the_uuid),
            (moves.look_if_next, never_watch_the_record),
        ),
        Limits(candidates=1, campaigns=1, kinds=_LINKS),
    ),
}
"""By name; with "none" the machine is as it should be."""
