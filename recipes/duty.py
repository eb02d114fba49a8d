"""What a page asks of one member: pure, and the same whoever asks again."""

from __future__ import annotations

from enum import StrEnum

from zkelect.recipes.member import Observed, Role
from zkelect.recipes.page import Page, Phase

__all__ = ["Act", "duty_of"]


class Act(StrEnum):
    """What an agent does for a page."""

    NOTHING = "nothing"
    DEMOTE = "demote"
    FENCE = "fence"
    FREEZE = "freeze"
    CATCH_UP = "catch up"
    PROMOTE = "promote"
    OPEN = "open"
    FOLLOW = "follow"


def duty_of(page: Page | None, name: str, observed: Observed, *, token: str) -> Act:
    """Return what this member has to do.

    A server that takes writes, or an agent that leads in the primary's election, without the page
    saying so, ends that first, whatever else there is to do. So does a primary whose lease is over,
    named or not: it waits to be promoted anew. Only a cluster that nobody has looked after before
    is taken over as it runs.

    :param token: of its leadership in the primary's election; empty: it has none.
    """
    if page is None:
        return Act.NOTHING
    writable = observed.role is Role.PRIMARY
    if page.phase is Phase.PROMOTE and page.winner == name:
        taken_over = page.primary is None
        return Act.DEMOTE if writable and not token and not taken_over else Act.PROMOTE
    rightful = page.holder == name and token == page.primary_token and token != ""
    if not rightful:
        return Act.DEMOTE if token or writable else _asked(page, name)
    return Act.OPEN if page.phase is Phase.OPEN else Act.NOTHING


def _asked(page: Page, name: str) -> Act:
    """Return the duty of one that may not be writable, and is not."""
    if page.phase is Phase.STEADY and name != page.primary:
        return Act.FOLLOW
    if page.phase is Phase.DEMOTE:
        return _demoting(page, name)
    if page.phase is Phase.FREEZE and name != page.primary:
        return Act.FREEZE if not page.planned or name == page.winner else Act.NOTHING
    if page.phase is Phase.CATCH_UP and name == page.winner:
        return Act.CATCH_UP
    return Act.NOTHING


def _demoting(page: Page, name: str) -> Act:
    if name == page.primary:
        return Act.DEMOTE
    return Act.FENCE if name == page.coordinator and not page.planned else Act.NOTHING
