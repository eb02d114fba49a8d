"""What must hold before a change of the primary begins, and while it goes on.

Each gate returns why not, as lines for people; nothing: it is open. A dubious answer is a no: who
cannot tell whether the primary still takes writes stops a fail-over as one who sees that it does.
"""

from __future__ import annotations

from zkelect.recipes.choice import Policy, choose
from zkelect.recipes.member import Answer, Heartbeat, Outcome, Role
from zkelect.recipes.page import Page
from zkelect.recipes.position import Position, Relation, compare
from zkelect.recipes.view import View

__all__ = [
    "before_fail_over",
    "before_promotion",
    "before_switchover",
    "demoted",
    "failure_of",
    "too_few",
    "waits",
]

Reasons = tuple[str, ...]


def failure_of(page: Page, view: View) -> str:
    """Return what is wrong with the primary; empty: nothing that calls for another one."""
    beat = view.beat(page.primary)
    if beat is None:
        return f"the agent of {page.primary} is not there"
    seen = beat.observed
    if seen.healthy and (seen.role is Role.PRIMARY or waits(page, view)):
        return ""
    told = f": {seen.detail}" if seen.detail else ""
    return f"{beat.name} is {seen.role}{'' if seen.healthy else ' and not healthy'}{told}"


def waits(page: Page, view: View) -> bool:
    """Whether the primary is well, has all, and is only not open, for its lease ran out.

    One that came back with less than it had, or than another one has, is compared like all others.
    """
    beat = view.beat(page.primary)
    if beat is None or beat.token or beat.observed.rebuild:
        return False
    fit = beat.observed.role is Role.DEMOTED and beat.observed.healthy
    return fit and _has_all(beat.observed.position, page, view)


def _has_all(position: Position | None, page: Page, view: View) -> bool:
    if position is None or page.position is None:
        return False
    if compare(position, page.position) not in (Relation.EQUAL, Relation.AHEAD):
        return False
    others = (beat.observed.position for beat in view.others(page.primary))
    return not any(each and compare(each, position) is Relation.AHEAD for each in others)


def before_fail_over(page: Page, view: View, policy: Policy) -> Reasons:
    """Return why no fail-over may begin."""
    reasons = [view.paused] if view.paused else []
    if page.cooling:
        reasons.append(f"cool-down: the last change was less than {policy.cool_down:g} s ago")
    if view.beat(page.primary) is None:
        reasons += _still_primary(page, view)
    choice = choose(view.beats, page, policy, view.sync)
    if choice.winner is None:
        reasons += choice.reasons
    return (*reasons, *too_few(page, view.others(page.primary), policy))


def before_switchover(page: Page, view: View, to: str) -> Reasons:
    """Return why the primary may not be exchanged for that member, in good order, now."""
    if view.paused:
        return (view.paused,)
    primary, target = view.beat(page.primary), view.beat(to)
    if primary is None or primary.observed.role is not Role.PRIMARY:
        return (f"{page.primary} is not there as the primary: only a fail-over can help",)
    if to == page.primary:
        return (f"{to} is the primary",)
    if target is None:
        return (f"{to} is not there",)
    return ()


def demoted(page: Page, view: View, policy: Policy) -> Reasons:
    """Return why it is not certain that the old primary takes no writes."""
    if page.primary is None:
        return ()
    old, fencer = view.beat(page.primary), view.beat(page.coordinator)
    done = old.answered(page.serial) if old is not None else None
    if old is not None and done is not None and done.outcome is Outcome.DONE:
        takes_writes = old.observed.role is Role.PRIMARY
        return (f"{old.name} says that it is demoted, and takes writes",) if takes_writes else ()
    verdict = fencer.answered(page.serial) if fencer is not None else None
    fenced = verdict.answer if verdict is not None else None
    if fenced is Answer.YES and page.coordinator != page.primary:
        return ()
    if old is not None:
        told = f": {done.detail}" if done is not None else ""
        return (f"{old.name} has not been demoted yet{told}",)
    return (*_unfenced(page, fenced, policy), *_still_primary(page, view))


def before_promotion(page: Page, view: View) -> Reasons:
    """Return why the winner may not be promoted this very moment, whatever was found before."""
    reasons = [view.paused] if view.paused else []
    if view.holder not in (None, page.winner):
        reasons.append(f"{view.holder} has the right to be writable still")
    reasons += (
        f"{beat.name} takes writes still"
        for beat in view.others(page.winner)
        if beat.observed.role is Role.PRIMARY
    )
    return tuple(reasons)


def too_few(page: Page, others: tuple[Heartbeat, ...], policy: Policy) -> Reasons:
    """Return whether so few are there that a better one may be among those that are not."""
    known = {member.name for member in page.members} - {page.primary}
    needed = len(known) // 2 + 1 if policy.min_seen is None else policy.min_seen
    if len(others) >= needed:
        return ()
    missing = ", ".join(sorted(known - {beat.name for beat in others})) or "nobody known"
    return (f"{len(others)} others are there, and {needed} must be; not there: {missing}",)


def _unfenced(page: Page, fenced: Answer | None, policy: Policy) -> Reasons:
    if fenced is None:
        return (f"{page.coordinator} has not tried to fence {page.primary} yet",)
    if fenced is Answer.UNKNOWN:
        return (f"whether {page.primary} is fenced is not known",)
    if policy.require_fence:
        return (f"{page.primary} cannot be fenced from outside, and require_fence asks for it",)
    return ()


def _still_primary(page: Page, view: View) -> Reasons:
    """An agent that is not there has no lease, as far as anybody knows; but look at the server."""
    reasons = []
    if view.holder == page.primary:
        reasons.append(f"{page.primary} has the right to be writable still")
    for beat in view.others(page.primary):
        sees = beat.sees if beat.witnessed == page.primary else Answer.UNKNOWN
        if sees is Answer.YES:
            reasons.append(f"{beat.name} sees that {page.primary} takes writes")
        if sees is Answer.UNKNOWN:
            reasons.append(f"{beat.name} cannot tell whether {page.primary} takes writes")
    return tuple(reasons)
