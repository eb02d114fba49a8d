"""The promises, and those that can be judged by one step of one machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Reason
from zkelect.core.state import Phase, State

__all__ = ["PROMISES", "Broken", "check_step", "keep"]


class Broken(Exception):  # a promise is broken; that is no error of the program
    """A promise does not hold.

    :ivar promise: which one, by its name in PROMISES.
    :ivar moves: what happened on the way there, so far as it is known.
    """

    def __init__(self, promise: str) -> None:
        super().__init__(f"{promise}: {PROMISES[promise]}")
        self.promise = promise
        self.moves: list[tuple[int, str]] = []


PROMISES: Final = {
    "exclusive": "at most one body works that counts on a lease",
    "granted": "who is granted has a living znode of its session, nobody is ahead, and a lease",
    "paused": "who was not the first when the election was paused is not granted while it is",
    "evicted": "who is asked to go has its lease renewed no more, and goes",
    "tokens": "the token of a grant is above those of all grants before",
    "stays": "a pause, its end, or that another one is asked to go, costs nobody its place",
    "void once": "a term is voided exactly once, and its loss never goes untold",
    "asking": "nothing is asked of the servers while the link is down",
    "stale": "a stale answer changes neither phase nor znode, except that what is gone is gone",
    "withdrawal": "a znode is not withdrawn under a running body that may count on the lease",
    "own": "the present candidate is never deleted as a stray",
    "finished": "campaigns finish in order, and nothing of theirs is left or under way",
    "comes to rest": "with all mended, everything comes to rest",
    "one leads": "with all mended, exactly one of those who stand leads, and the others wait",
    "cancelled": "with all mended, a cancelled campaign is finished",
    "leaves": "with all mended, who wants to leave is idle, and its campaigns are finished",
    "nothing left": "with all mended, each znode is the candidate of a machine that stands",
}


def keep(promise: str, kept: object) -> None:
    """Raise Broken unless it is kept."""
    if not kept:
        raise Broken(promise)


# --- of one step ---------------------------------------------------------------------------


def check_step(before: State, event: Event, after: State, effects: tuple[Effect, ...]) -> None:
    """Judge what the machine made of one event.

    :raises Broken: one of the promises of a single step does not hold.
    """
    for promise, kept in _STEP.items():
        keep(promise, kept(before, event, after, effects))


def _count(effects: tuple[Effect, ...], kind: type[Effect]) -> int:
    return sum(isinstance(effect, kind) for effect in effects)


def _grants_with_a_lease(
    before: State, event: Event, after: State, effects: tuple[Effect, ...]
) -> bool:
    if not _count(effects, ev.Grant):
        return before.leads or not after.leads
    ready = event.leased and after.connected and not after.ahead and not before.leads
    sure = after.record is not None and after.record.paused is None and not after.looking
    return ready and after.node is not None and sure


def _voids_once(before: State, _: Event, after: State, effects: tuple[Effect, ...]) -> bool:
    opened, closed = _count(effects, ev.Grant), _count(effects, ev.Void)
    return opened - closed == int(after.leads) - int(before.leads) and opened + closed <= 1


def _asks_while_connected(_: State, __: Event, after: State, effects: tuple[Effect, ...]) -> bool:
    return after.connected or not _count(effects, ev.Request)


def _ignores_stale_answers(
    before: State, event: Event, after: State, effects: tuple[Effect, ...]
) -> bool:
    if not isinstance(event, ev.Answer) or event.stamp == before.stamp:
        return True
    if isinstance(event, ev.Deleted | ev.DeleteRefused) and before.phase is Phase.LEAVING:
        return True
    same = (before.phase, before.node, before.term) == (after.phase, after.node, after.term)
    return same and all(isinstance(effect, ev.Delete) for effect in effects)


def _keeps_its_place(before: State, event: Event, _: State, effects: tuple[Effect, ...]) -> bool:
    if not isinstance(event, ev.Recorded) or not before.is_same_history(event.record):
        return True
    if before.is_evicted_by(event.record):
        return True
    return not _count(effects, ev.Void) and not _count(effects, ev.Create)


def _withdraws_in_time(_: State, __: Event, after: State, effects: tuple[Effect, ...]) -> bool:
    free = after.term is None or (after.released and after.reason is not Reason.RESIGNED)
    return free or not _count(effects, ev.Withdraw)


def _deletes_only_strays(_: State, __: Event, after: State, effects: tuple[Effect, ...]) -> bool:
    return not any(
        isinstance(effect, ev.Delete) and after.is_own(effect.node) for effect in effects
    )


_STEP: Final[dict[str, Callable[[State, Event, State, tuple[Effect, ...]], bool]]] = {
    "granted": _grants_with_a_lease,
    "stays": _keeps_its_place,
    "void once": _voids_once,
    "asking": _asks_while_connected,
    "stale": _ignores_stale_answers,
    "withdrawal": _withdraws_in_time,
    "own": _deletes_only_strays,
}
