"""What a hook is told: one JSON object on its input, and a few words in its environment."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.recipes.clock import now
from zkelect.recipes.member import Member
from zkelect.recipes.position import Position

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["REQUIRED", "Order", "Verb", "environment_of"]


class Verb(StrEnum):
    """What is asked for; the name of an executable, or the argument of the only one."""

    CHECK = "check"
    """May this server be looked after? Once, at the agent's start."""
    POSITION = "position"
    """How is it? Twice a second."""
    REACH = "reach"
    """Does another member's server take writes, as seen from here?"""
    DEMOTE = "demote"
    """Take no writes, now and after a restart."""
    CLOSE = "close"
    """The dead-man's: shut the writers out at once."""
    FENCE = "fence"
    """Make sure from outside that another member's server takes no writes."""
    FREEZE = "freeze"
    """Take in nothing more from the primary, once a position is there."""
    CATCH_UP = "catch-up"
    """Apply what was taken in."""
    PROMOTE = "promote"
    """Become primary, on a new branch, closed to writers."""
    CLAIM = "claim"
    """Write the token into the store, before anything else is written."""
    OPEN = "open"
    """Let writers in."""
    FOLLOW = "follow"
    """Follow a primary, rewound if need be."""


REQUIRED: Final = frozenset(Verb) - {
    Verb.CHECK,
    Verb.REACH,
    Verb.FENCE,
    Verb.CATCH_UP,
    Verb.CLAIM,
}
"""Without these nobody can be promoted or demoted."""


@attrs.frozen(kw_only=True)
class Order:
    """One call of a hook, as it stands on its input.

    :ivar member: whose server the hook is to look after: our own.
    :ivar other: whom to reach, fence or follow; None: the verb is about nobody else.
    :ivar planned: of ``demote``: in good order, so that the others get everything.
    :ivar position: of ``freeze``: what must be there first; of ``follow``: where the primary's
        history stood when it was opened. None: there is none.
    """

    verb: Verb
    member: Member
    other: Member | None = None
    planned: bool = False
    position: Position | None = None


def environment_of(order: Order, deadline: float, token: str) -> Mapping[str, str]:
    """Return the variables that a hook has besides the agent's own.

    :param deadline: boot-clock seconds, as the first number in /proc/uptime.
    :param token: of the leadership of the server as the primary; empty: it has none.
    """
    return {
        "ZKELECT_VERB": order.verb,
        "ZKELECT_MEMBER": order.member.name,
        "ZKELECT_DEADLINE": f"{deadline:.3f}",
        "ZKELECT_TIMEOUT": f"{max(deadline - now(), 0.0):.3f}",
        "ZKELECT_TOKEN": token,
    }
