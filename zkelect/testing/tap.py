"""Decides what passes on one connection; knows no socket.

A :class:`Link` hands over the bytes that came and does what it is told, in order: the
acts of one direction queue behind a :class:`Hold` until its gate is open, as bytes do in
TCP. Nothing is ever sent twice or out of order, for TCP does neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

    from zkelect.testing.conversation import Direction

__all__ = ["Act", "End", "Gate", "Hang", "Hold", "Send", "Tap"]


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

    def __init__(
        self, cut: Set[Direction], heard: Callable[[Direction, bytes, bool], None]
    ) -> None:
        """Look at ``cut`` again with everything that comes.

        :param heard: is given direction, bytes, and whether they pass.
        """
        self._cut = cut
        self._heard = heard
        self._broken: set[Direction] = set()

    @property
    def broken(self) -> bool:
        """The two sides no longer know the same, so the connection can never go on."""
        return bool(self._broken)

    def take(self, direction: Direction, data: bytes) -> Sequence[Act]:
        """Return what to do now that bytes came."""
        passes = self.hears(direction)
        self._heard(direction, data, passes)
        return (Send(direction, data),) if passes else ()

    def hears(self, direction: Direction) -> bool:
        """Whether the other side hears what this one does, such as that it ends."""
        if direction in self._cut:
            self._broken.add(direction)
        return direction not in self._broken

    def sever(self) -> None:
        """Let nothing pass any more."""
        self._broken |= {"requests", "replies"}
