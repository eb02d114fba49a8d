"""Sequence numbers as if a parent had had many more children: two thousand million, say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.session import wire
from zkelect.testing.conversation import REPLIES, Message
from zkelect.testing.jute import paths_in, replace_texts

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Shift"]

_NUMBER: Final = re.compile(r"(-[1-9][0-9]{9}|-[0-9]{9}|[0-9]{10})\Z")
"""What Java's ``%010d`` makes of an int, negative ones too."""


@attrs.frozen
class Shift:
    """Clients see the children of one parent with numbers that are higher by so many.

    A number past 2^31-1 goes on from -2^31, as it does in the server's 32-bit counter.
    """

    parent: str
    by: int

    def apply(self, message: Message) -> Message:
        """Return a frame as the other side knows it; one that cannot be read as it is."""
        by = self.by if message.direction == REPLIES else -self.by
        try:
            return attrs.evolve(message, data=replace_texts(message, self._replace(message, by)))
        except wire.MalformedFrame:
            return message

    def _replace(self, message: Message, by: int) -> Callable[[str], str]:
        listed = message.direction == REPLIES and paths_in(message) == (self.parent,)

        def replace(text: str) -> str:
            above, slash, _ = text.rpartition("/")
            ours = (above or "/") == self.parent if slash else listed
            return _NUMBER.sub(lambda found: _shifted(found[1], by), text) if ours else text

        return replace


def _shifted(number: str, by: int) -> str:
    wrapped = (int(number) + by + 2**31) % 2**32 - 2**31
    return f"{wrapped:010d}"
