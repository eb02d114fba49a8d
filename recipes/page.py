"""The page: what is being done about the primary, written before it is done."""

from __future__ import annotations

from enum import StrEnum

import attrs

from zkelect.recipes.member import Member
from zkelect.recipes.position import Position

__all__ = ["Page", "Phase", "Request"]


class Phase(StrEnum):
    """How far a change of the primary has come; they follow each other in this order."""

    DEMOTE = "demote"
    """The old primary stops taking writes, or is fenced."""
    FREEZE = "freeze"
    """The others take in nothing more, so that what they have can be compared."""
    CATCH_UP = "catch-up"
    """The winner applies what it has received."""
    PROMOTE = "promote"
    """The winner is elected, becomes primary and claims the fence; nobody writes to it yet."""
    OPEN = "open"
    """The winner lets writers in."""
    STEADY = "steady"
    """There is a primary; the others follow it."""


@attrs.frozen(kw_only=True)
class Page:
    """What was decided last.

    :ivar serial: one more with every page that asks for something.
    :ivar token: of the coordinator that wrote it.
    :ivar coordinator: that one's name.
    :ivar primary: who was primary last, or is; None before the first.
    :ivar winner: who is to be; None: not decided.
    :ivar planned: a switchover, whose old primary is well.
    :ivar position: where the primary's history stood when it was opened: what everybody else has
        to share.
    :ivar target: in a switchover, what the winner must have: the last that the old one wrote.
    :ivar promoted_by: token of the coordinator that last ordered a promotion.
    :ivar reign: what ``promoted_by`` was when the present primary was made one.
    :ivar primary_token: of the leadership with which the primary may take writes, and no other;
        the one in the fence.
    :ivar passed_over: who failed in this change and is not chosen again while others can be.
    :ivar cooling: a change was made so recently that no fail-over begins.
    :ivar members: everybody who has ever been seen.
    :ivar system: what all members have in common; who has another one is not one of them.
    :ivar request: id of the last request that was taken up.
    :ivar refused: why that request was not carried out; empty: it was, or is still.
    :ivar why: what the change is for.
    """

    phase: Phase
    serial: int = 1
    token: str
    coordinator: str
    primary: str | None = None
    winner: str | None = None
    planned: bool = False
    position: Position | None = None
    target: Position | None = None
    promoted_by: str = ""
    reign: str = ""
    primary_token: str = ""
    passed_over: tuple[str, ...] = ()
    cooling: bool = False
    members: tuple[Member, ...] = ()
    system: str = ""
    request: str = ""
    refused: str = ""
    why: str = ""

    def member(self, name: str | None) -> Member | None:
        """Return the member of that name as it was last seen."""
        return next((member for member in self.members if member.name == name), None)

    @property
    def holder(self) -> str | None:
        """Who may hold the right to be writable: nobody else may even stand for it."""
        if self.phase in (Phase.PROMOTE, Phase.OPEN):
            return self.winner
        return self.primary if self.phase is Phase.STEADY else None


@attrs.frozen(kw_only=True)
class Request:
    """What somebody asks for: a switchover, or that a member is forgotten.

    :ivar id: told apart from others by this. :ivar to: who shall be primary; None: the best.
    :ivar forget: a member that is gone for good; None: it is a switchover.
    """

    id: str
    to: str | None = None
    forget: str | None = None
    by: str = ""
    why: str = ""
