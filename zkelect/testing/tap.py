"""Decides what passes on one connection; knows no socket.

A :class:`Link` hands over the bytes that came and does what it is told, in order: the
acts of one direction queue behind a :class:`Hold` until its gate is open, as bytes do in
TCP. Nothing is ever sent twice or out of order, for TCP does neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from zkelect.session.clock import SystemClock
from zkelect.testing.conversation import REPLIES, REQUESTS, Conversation
from zkelect.testing.journal import Frame

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from zkelect.testing.conversation import Direction
    from zkelect.testing.journal import Journal

__all__ = ["Act", "End", "Gate", "Hang", "Hold", "Send", "Tap", "boottime"]

boottime: Final = SystemClock().boottime


@attrs.frozen
class Send:
    """Pass these bytes on."""

    direction: Direction
    data: bytes


@attrs.define(eq=False)
class Gate:
    """What a :class:`Hold` waits for."""

    open: bool = False


@attrs.frozen
class Hold:
    """Pass nothing more in this direction until the gate is open."""

    direction: Direction
    gate: Gate


@attrs.frozen
class End:
    """End the connection on both sides, after what was to be passed before."""

    direction: Direction


@attrs.frozen
class Hang:
    """Keep the connection open, and pass nothing more either way."""

    direction: Direction


Act = Send | Hold | End | Hang


class Tap:
    """Passes everything, until its direction is cut.

    A direction from which a cut has swallowed something is broken: nothing after it may
    pass, for the stream would have a hole.
    """

    def __init__(self, cut: Set[Direction], journal: Journal) -> None:
        """Look at ``cut`` again with everything that comes; note the frames."""
        self.journal: Final = journal
        self.conversation: Final = Conversation()
        self._cut = cut
        self._broken: set[Direction] = set()

    @property
    def broken(self) -> bool:
        """The two sides no longer know the same, so the connection can never go on."""
        return bool(self._broken)

    def begin(self) -> bool:
        """A client has come: return whether the server hears of it."""
        if REQUESTS in self._cut:
            self.sever()
        return not self.broken

    def take(self, direction: Direction, data: bytes) -> Sequence[Act]:
        """Return what to do now that bytes came."""
        passes, at = self.admits(direction), boottime()
        for name, xid in self.conversation.hear(direction, data):
            self.journal.note(Frame(direction=direction, name=name, xid=xid, at=at, passed=passes))
        return (Send(direction, data),) if passes else ()

    def admits(self, direction: Direction) -> bool:
        """Whether what comes now may pass, be it only the end; a cut breaks it for good."""
        if direction in self._cut:
            self._broken.add(direction)
        return direction not in self._broken

    def break_off(self, direction: Direction) -> None:
        """Let nothing more pass in this direction."""
        self._broken.add(direction)

    def sever(self) -> None:
        """Let nothing pass any more."""
        self._broken |= {REQUESTS, REPLIES}
