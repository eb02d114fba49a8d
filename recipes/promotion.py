"""How a new primary is made: one pure function from what is known to what is decided.

:func:`advance` takes the page that was written last and what the coordinator sees, and returns the
next page, or that it waits, and for what, or that it gives its office up. No clock, no thread, no
I/O: who calls it writes the page, in one transaction with a check that it is still the coordinator
and that nobody else has written meanwhile. Agents act on pages only (:mod:`duty`), so each phase is
in ZooKeeper before anything is done, and a coordinator that dies anywhere leaves all that the next
one needs::

    STEADY ── switchover ──> DEMOTE ──> FREEZE ──> CATCH_UP ──> PROMOTE ──> OPEN ──> STEADY
       └───── fail-over ──────^            ^          │            │          │
                                           └── failed ┴── failed ──┘          └─> DEMOTE

What fails in a switchover before PROMOTE goes back: PROMOTE, with the old primary as the winner.

**Two elections.** A lock must not choose the primary: the quickest one is not the one with the
data. So the agents elect a *coordinator*, and that compares and decides. But its lease says nothing
about the primary's server, which stands on another host; if the primary's agent is cut off from
ZooKeeper, the coordinator learns nothing of it but that it is gone. So the right to be writable is
a leadership of its own, in a second election, for which nobody stands but whom the page names. Its
lease is the primary's dead-man: the agent stops the server before it runs out, and nobody else is
granted it sooner. Its token is the one that the new primary writes into the fence. One election
could not do both: either the coordinator would have to be the primary, or the primary would have
no lease. What the pages decide may be wrong, the writable server is still one: that is promised
by the second election. That the right one wins is promised by the pages.

**One promotion with one token.** A coordinator orders one promotion in its term. If another one is
needed, it resigns, and whoever follows has a higher token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from zkelect.recipes.choice import Choice, Policy, choose
from zkelect.recipes.gates import (
    before_fail_over,
    before_promotion,
    before_switchover,
    demoted,
    failure_of,
    too_few,
    waits,
)
from zkelect.recipes.member import Outcome, Role
from zkelect.recipes.page import Page, Phase, Request
from zkelect.recipes.position import Relation, compare
from zkelect.recipes.view import Decision, Resign, View, Wait, Write

__all__ = ["advance"]


def advance(page: Page | None, view: View, policy: Policy) -> Decision:
    """Return what the coordinator does next."""
    if page is None:
        return _begin(view)
    return _STEPS[page.phase](page, view, policy)


# --- the first page ------------------------------------------------------------------------


def _begin(view: View) -> Decision:
    """Take over a cluster that runs: with one primary, which stays it."""
    systems = {beat.observed.system for beat in view.beats if beat.observed.system}
    primaries = [beat for beat in view.beats if beat.observed.role is Role.PRIMARY]
    if len(systems) > 1:
        return Wait((f"more than one cluster on this path: systems {', '.join(sorted(systems))}",))
    if len(primaries) != 1:
        names = ", ".join(beat.name for beat in primaries) or "none"
        return Wait((f"to begin with, one server must be the primary; these are: {names}",))
    first = primaries[0]
    if view.paused:
        return Wait((view.paused,))
    page = Page(
        phase=Phase.PROMOTE,
        token=view.token,
        coordinator=view.coordinator,
        position=first.observed.position,
        members=tuple(sorted((beat.member for beat in view.beats), key=lambda each: each.name)),
        system="".join(systems),
    )
    return _promote(page, view, first.name, "it was the primary before anybody looked after it")


# --- steady --------------------------------------------------------------------------------


def _steady(page: Page, view: View, policy: Policy) -> Decision:
    if page.promoted_by == view.token:
        return Resign("it has ordered a promotion; the next one needs a higher token")
    if (noted := _note(page, view)) != page:
        return Write(noted)
    if page.cooling and view.elapsed >= policy.cool_down:
        return Write(_signed(page, view, cooling=False))
    if waits(page, view):
        return _promote_again(page, view)
    if failure := failure_of(page, view):
        return _fail_over(page, view, policy, failure)
    if view.request is not None and view.request.id != page.request:
        return _answer(page, view, policy, view.request)
    return Wait()


def _note(page: Page, view: View) -> Page:
    """Enter who is new."""
    members = {member.name: member for member in page.members}
    members |= {beat.name: beat.member for beat in view.beats}
    entered = tuple(members[name] for name in sorted(members))
    return page if entered == page.members else _signed(page, view, members=entered)


def _promote_again(page: Page, view: View) -> Decision:
    """Open a primary again whose lease ran out before anybody took its place: nobody has more."""
    assert page.primary is not None
    again = attrs.evolve(page, winner=page.primary)
    reasons = before_promotion(again, view)
    if reasons:
        return Wait((f"the lease of {page.primary} ran out", *reasons))
    return _promote(again, view, page.primary, "its lease ran out")


def _fail_over(page: Page, view: View, policy: Policy, failure: str) -> Decision:
    if view.failing < policy.patience:
        return Wait((failure, f"that is borne for {policy.patience:g} s"))
    reasons = before_fail_over(page, view, policy)
    if reasons:
        return Wait((failure, *reasons))
    return Write(_next(page, view, Phase.DEMOTE, planned=False, winner=None, why=failure))


def _answer(page: Page, view: View, policy: Policy, request: Request) -> Decision:
    """Do what is asked for, or refuse: whoever asked may ask again."""
    page = attrs.evolve(page, request=request.id, refused="")
    if request.forget is not None:
        return _forget(page, view, request.forget)
    return _switch_over(page, view, policy, request)


def _forget(page: Page, view: View, name: str) -> Decision:
    """Count a member no more that is gone for good."""
    if view.beat(name) is not None or name == page.primary:
        return Write(_signed(page, view, refused=f"{name} is there, or the primary"))
    if page.member(name) is None:
        return Write(_signed(page, view, refused=f"there has never been a {name}"))
    left = tuple(member for member in page.members if member.name != name)
    return Write(_signed(page, view, members=left))


def _switch_over(page: Page, view: View, policy: Policy, request: Request) -> Decision:
    others = view.others(page.primary)
    free = attrs.evolve(policy, synchronous=False)
    best = choose(others, page, free, view.sync)
    winner = best.winner if request.to is None else request.to
    if winner is None:
        return Write(_signed(page, view, refused="; ".join(best.reasons)))
    reasons = (
        *before_switchover(page, view, winner),
        *(
            f"{each.name}: {each.reason}"
            for each in best.verdicts
            if each.name == winner and view.beat(winner) in others and not each.eligible
        ),
    )
    if reasons:
        return Write(_signed(page, view, refused="; ".join(reasons)))
    why = f"{request.by}: {request.why}" if request.why else request.by
    return Write(_next(page, view, Phase.DEMOTE, planned=True, winner=winner, why=why))


# --- the phases of a change ------------------------------------------------------------------


def _demote(page: Page, view: View, policy: Policy) -> Decision:
    if page.planned:
        return _demote_in_order(page, view, policy)
    if page.coordinator != view.coordinator:  # the one that was to fence it
        return Write(_next(page, view, Phase.DEMOTE))
    reasons = demoted(page, view, policy)
    if reasons:
        return Wait(reasons)
    return Write(_next(page, view, Phase.FREEZE, winner=None, target=None))


def _demote_in_order(page: Page, view: View, policy: Policy) -> Decision:
    old = view.beat(page.primary)
    if old is None:
        return Write(_next(page, view, Phase.DEMOTE, planned=False, winner=None))
    trouble = _trouble(page, view, policy, old.name) or _absence(page, view)
    if trouble:
        return _roll_back(page, view, trouble)
    done = old.answered(page.serial)
    if done is None:
        return Wait((f"{old.name} is being demoted",))
    if done.position is None:
        return _roll_back(page, view, f"{old.name} cannot tell what it has written last")
    return Write(_next(page, view, Phase.FREEZE, target=done.position))


def _freeze(page: Page, view: View, policy: Policy) -> Decision:
    if page.planned:
        return _freeze_in_order(page, view, policy)
    others = view.others(page.primary)
    open_ = [beat.name for beat in others if beat.answered(page.serial) is None]
    if open_ and view.elapsed < policy.phase_timeout:
        return Wait((f"not frozen yet: {', '.join(open_)}",))
    if view.paused:
        return Wait((view.paused,))
    frozen = tuple(beat for beat in others if beat.name not in open_)
    choice = choose(view.beats, page, policy, view.sync)
    reasons = too_few(page, frozen, policy)
    if choice.winner is None or reasons:
        return Wait((*reasons, *choice.reasons))
    why = "; ".join((page.why, *_passed_by(page, choice)))
    return Write(_next(page, view, Phase.CATCH_UP, winner=choice.winner, why=why))


def _passed_by(page: Page, choice: Choice) -> tuple[str, ...]:
    """Return why those that are there may not win: whoever wonders at the winner wants to know."""
    gone = page.primary
    return tuple(
        f"not {each.name}: {each.reason}"
        for each in choice.verdicts
        if each.reason and each.name != gone
    )


def _freeze_in_order(page: Page, view: View, policy: Policy) -> Decision:
    """In a switchover the winner is given: it has all that was written, or all goes back."""
    assert page.winner is not None
    trouble = _trouble(page, view, policy, page.winner)
    if trouble:
        return _roll_back(page, view, trouble)
    winner = view.beat(page.winner)
    if winner is None or winner.answered(page.serial) is None:
        return Wait((f"not frozen yet: {page.winner}",))
    choice = choose(view.beats, page, attrs.evolve(policy, synchronous=False), view.sync)
    if lacking := _lacking(page, choice):
        return _roll_back(page, view, lacking)
    return Write(_next(page, view, Phase.CATCH_UP))


def _lacking(page: Page, choice: Choice) -> str:
    verdict = next((each for each in choice.verdicts if each.name == page.winner), None)
    if verdict is None or verdict.reason:
        return f"{page.winner}: {'not there' if verdict is None else verdict.reason}"
    assert verdict.position is not None  # without one it would not be eligible
    assert page.target is not None
    relation = compare(verdict.position, page.target)
    if relation in (Relation.EQUAL, Relation.AHEAD):
        return ""
    return f"{page.winner} is {relation}: it has {verdict.position}, and not {page.target}"


def _catch_up(page: Page, view: View, policy: Policy) -> Decision:
    assert page.winner is not None
    trouble = _trouble(page, view, policy, page.winner)
    if trouble:
        return _choose_again(page, view, trouble)
    winner = view.beat(page.winner)
    if winner is None or winner.answered(page.serial) is None:
        return Wait((f"{page.winner} is catching up",))
    reasons = before_promotion(page, view)
    if reasons:
        return Wait(reasons)
    return _promote(page, view, page.winner, page.why)


def _promoted(page: Page, view: View, policy: Policy) -> Decision:
    """Look what became of the promotion; only what was claimed is recorded, and then opened."""
    assert page.winner is not None
    trouble = _trouble(page, view, policy, page.winner)
    if trouble and page.primary is None:  # whose data would another one be compared with?
        return _promote(page, view, page.winner, trouble)
    if trouble:
        return _choose_again(page, view, trouble)
    winner = view.beat(page.winner)
    done = winner.answered(page.serial) if winner is not None else None
    if winner is None or done is None or not done.token or done.token != winner.token:
        return Wait((f"{page.winner} is being promoted",))
    recorded = attrs.evolve(
        page,
        primary=page.winner,
        position=done.position or page.position,
        primary_token=done.token,
        reign=page.promoted_by,
    )
    return Write(_next(recorded, view, Phase.OPEN))


def _opened(page: Page, view: View, policy: Policy) -> Decision:
    assert page.winner is not None
    winner = view.beat(page.winner)
    trouble = _trouble(page, view, policy, page.winner)
    if winner is not None and winner.token != page.primary_token:
        trouble = f"the lease of {winner.name} ran out"
    if trouble:  # it may have let writers in: it is the primary, and has failed
        return Write(_next(page, view, Phase.DEMOTE, planned=False, winner=None, why=trouble))
    if winner is None or winner.answered(page.serial) is None:
        return Wait((f"{page.winner} is being opened",))
    over = attrs.evolve(page, winner=None, target=None, passed_over=(), planned=False)
    return Write(_next(over, view, Phase.STEADY, cooling=True))


# --- what goes wrong ---------------------------------------------------------------------------


def _trouble(page: Page, view: View, policy: Policy, name: str) -> str:
    """Return why this member will not do its duty; empty: it has, or may still."""
    beat = view.beat(name)
    done = beat.answered(page.serial) if beat is not None else None
    if done is not None:
        return (
            "" if done.outcome is Outcome.DONE else f"{name} failed to {page.phase}: {done.detail}"
        )
    if beat is None and view.elapsed >= policy.patience:
        return f"the agent of {name} is not there"
    if view.elapsed >= policy.phase_timeout:
        return f"{name} did not {page.phase} within {policy.phase_timeout:g} s"
    return ""


def _absence(page: Page, view: View) -> str:
    winner = view.beat(page.winner)
    return f"{page.winner} is not there any more" if winner is None else ""


def _choose_again(page: Page, view: View, trouble: str) -> Decision:
    """Freeze and compare anew, without the one that failed as long as there is another."""
    if page.planned and page.phase is Phase.CATCH_UP:
        return _roll_back(page, view, trouble)
    assert page.winner is not None
    again = attrs.evolve(
        page,
        winner=None,
        planned=False,
        target=None,
        passed_over=(*(name for name in page.passed_over if name != page.winner), page.winner),
        refused=trouble if page.planned else page.refused,
    )
    return Write(_next(again, view, Phase.FREEZE))


def _roll_back(page: Page, view: View, trouble: str) -> Decision:
    """Let the old primary of a switchover be primary again; without it, it is a fail-over."""
    told = f"rolled back: {trouble}"
    if view.beat(page.primary) is None or page.primary is None:
        return Write(
            _next(page, view, Phase.DEMOTE, planned=False, winner=None, target=None, refused=told)
        )
    return _promote(attrs.evolve(page, planned=False, refused=told), view, page.primary, page.why)


# --- pages -------------------------------------------------------------------------------------


def _promote(page: Page, view: View, winner: str, why: str) -> Decision:
    if page.promoted_by == view.token:
        return Resign("it has ordered a promotion; the next one needs a higher token")
    return Write(_next(page, view, Phase.PROMOTE, winner=winner, promoted_by=view.token, why=why))


def _next(page: Page, view: View, phase: Phase, **changes: Any) -> Page:
    """Return a page that asks for something new."""
    return _signed(page, view, phase=phase, serial=page.serial + 1, **changes)


def _signed(page: Page, view: View, **changes: Any) -> Page:
    return attrs.evolve(page, token=view.token, coordinator=view.coordinator, **changes)


_Step = Callable[[Page, View, Policy], Decision]
_STEPS: Final[dict[Phase, _Step]] = {
    Phase.DEMOTE: _demote,
    Phase.FREEZE: _freeze,
    Phase.CATCH_UP: _catch_up,
    Phase.PROMOTE: _promoted,
    Phase.OPEN: _opened,
    Phase.STEADY: _steady,
}
