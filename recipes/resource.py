"""What a recipe must be able to do with its own server."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from zkelect import Leadership
from zkelect.recipes.member import Answer, Member, Observed
from zkelect.recipes.position import Position

__all__ = ["NeedsRebuild", "NotNow", "Resource", "SynchronousResource", "Unfit"]


class Unfit(Exception):
    """The server cannot be looked after as it is set up; the text says what to change."""


class NotNow(Exception):
    """It cannot be done at present, and is worth trying again."""


class NeedsRebuild(Exception):
    """The server cannot join this history any more: it has to be made anew from a copy."""


@runtime_checkable
class Resource(Protocol):
    """One server, looked after by the agent on its host.

    Each act may be asked for again after it was done, also by an agent that does not know that it
    was: then it changes nothing. It ends by its deadline, a boot-clock instant
    (``CLOCK_BOOTTIME``), by raising :class:`NotNow` if it must; anything else that it raises is a
    failure whose text is shown. One thread makes all calls, but ``arm`` and the ``demote`` of a
    primary whose lease ends: they come from a second one, while another act may be running.
    """

    @property
    def member(self) -> Member:
        """Who this is."""

    def check(self) -> None:
        """Look, once at the start, whether this server can be looked after at all.

        :raises Unfit: it cannot.
        """

    def observe(self) -> Observed:
        """Look at the server; one that is down is an observation, and no error."""

    def reach(self, member: Member) -> Answer:
        """Ask another member's server directly: NO when nothing there takes writes.

        UNKNOWN only when it could not be asked, by a fault of ours.
        """

    def demote(self, *, planned: bool, deadline: float) -> Position | None:
        """Make sure that it takes no writes, now and after any restart of the server.

        :param planned: in good order, so that the others get all of it; else as fast as can be.
        :returns: the last that it has, None when that cannot be told.
        """

    def fence(self, member: Member, deadline: float) -> Answer:
        """Make sure from outside that another member's server takes no writes.

        NO: there is no such means here. UNKNOWN: it did not work, and nobody goes on.
        """

    def freeze(self, until: Position | None, deadline: float) -> Position:
        """Take in nothing more, as soon as ``until`` is there.

        :returns: the last that it has durably, whether applied or not.
        """

    def catch_up(self, deadline: float) -> Position:
        """Apply all that it has."""

    def promote(self, deadline: float) -> Position:
        """Become primary, on a new branch; a primary stays what it is.

        :returns: the position at which the new branch begins, or a later one.
        """

    def verify(self, deadline: float) -> Position:
        """Look whether it is the primary that it should be; raise when it is not."""

    def claim(self, leadership: Leadership) -> None:
        """Write the token into the fence, before anything else is written."""

    def open(self, deadline: float) -> Position:
        """Let writers in."""

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        """Follow this primary, rewound if need be; never writable in between.

        :param position: where the primary's history stood when it was opened.
        :raises NeedsRebuild: that cannot be.
        """

    def arm(self, deadline: float) -> None:
        """Have the server stopped at that instant, even if this process hangs.

        It is called again and again while the lease is renewed; the last one counts.
        """

    def disarm(self) -> None:
        """Forget the last :meth:`arm`: the server takes no writes, or nobody is to stop it."""


@runtime_checkable
class SynchronousResource(Resource, Protocol):
    """A resource whose primary can wait for others before it acknowledges a write."""

    def require(self, names: Collection[str], deadline: float) -> None:
        """From the return on, acknowledge a write only when all of these members have it."""

    def in_step(self) -> Collection[str]:
        """Return who is attached and has everything that was acknowledged until this call.

        :raises NotNow: the server cannot tell; nobody is struck off for that.
        """
