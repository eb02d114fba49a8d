"""Engines that are broken on purpose: a search that finds no fault in them proves nothing."""

from __future__ import annotations

import attrs

from zkelect.recipes.choice import Policy
from zkelect.recipes.duty import Act, duty_of
from zkelect.recipes.member import Answer, Heartbeat, Observed, Role
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.promotion import advance
from zkelect.recipes.view import Decision, Resign, View, Write

__all__ = [
    "blind_to_sync",
    "first_by_name",
    "never_demotes",
    "never_gives_up",
    "never_resigns",
    "promotes_the_lagging",
    "reckless",
]


def never_resigns(page: Page | None, view: View, policy: Policy) -> Decision:
    """Order a second promotion with the token of the first."""
    decision = advance(page, view, policy)
    if not isinstance(decision, Resign):
        return decision
    other = advance(page, attrs.evolve(view, token=f"{view.token}x"), policy)
    if not isinstance(other, Write):
        return decision
    before = "" if page is None else page.promoted_by
    own = view.token if other.page.promoted_by != before else before
    return Write(attrs.evolve(other.page, token=view.token, promoted_by=own))


def first_by_name(page: Page | None, view: View, policy: Policy) -> Decision:
    """Let a name decide and not the data, as a lock would."""
    decision = advance(page, view, policy)
    if not isinstance(decision, Write) or decision.page.phase is not Phase.CATCH_UP:
        return decision
    names = [beat.name for beat in view.others(decision.page.primary)]
    return Write(attrs.evolve(decision.page, winner=max(names)))


def promotes_the_lagging(page: Page | None, view: View, policy: Policy) -> Decision:
    """Do not look, in a switchover, whether the target has all of it."""
    if page is not None and page.phase is Phase.FREEZE and page.planned:
        page = attrs.evolve(page, target=page.position)
    return advance(page, view, policy)


def blind_to_sync(page: Page | None, view: View, policy: Policy) -> Decision:
    """Let anybody win, in synchronous mode as well."""
    return advance(page, view, attrs.evolve(policy, synchronous=False))


def never_gives_up(page: Page | None, view: View, policy: Policy) -> Decision:
    """Wait for ever for who does not answer."""
    patient = attrs.evolve(view, elapsed=0.0)
    return advance(page, patient, policy)


def reckless(page: Page | None, view: View, policy: Policy) -> Decision:
    """Look at nothing before a fail-over: not at the old primary, nor at who may be writable."""
    if page is not None and page.phase is Phase.DEMOTE and not page.planned:
        freeze = attrs.evolve(page, phase=Phase.FREEZE, serial=page.serial + 1, winner=None)
        return Write(attrs.evolve(freeze, token=view.token, coordinator=view.coordinator))
    blind = attrs.evolve(view, holder=None, beats=tuple(map(_unwritable, view.beats)))
    return advance(page, blind, policy)


def _unwritable(beat: Heartbeat) -> Heartbeat:
    """Make nothing of it that it, or somebody else, takes writes."""
    observed = attrs.evolve(beat.observed, role=Role.REPLICA)
    return attrs.evolve(beat, sees=Answer.NO, observed=observed)


def never_demotes(page: Page | None, name: str, observed: Observed, *, token: str) -> Act:
    """Go on as the primary whatever the page says."""
    act = duty_of(page, name, observed, token=token)
    return Act.NOTHING if act is Act.DEMOTE else act
