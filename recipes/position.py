"""Where a replicated server stands: an offset on one branch of one history.

Offsets of two servers may be compared only as far as their histories are the same. A promotion
starts a new branch: PostgreSQL calls it a timeline, Redis a replication id. Two servers that were
both promoted have gone different ways from there on, whatever their offsets say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

import attrs

from zkelect import InvalidArgument

__all__ = ["Branch", "Position", "Relation", "compare", "trunk"]

_FORM: Final = "'id@start/id@start:offset', with whole numbers"


class Relation(StrEnum):
    """How one position stands to another."""

    EQUAL = "equal"
    BEHIND = "behind"
    AHEAD = "ahead"
    DIVERGED = "diverged"
    UNRELATED = "unrelated"


def _is_plain(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value or set(value) & set("@/: "):
        raise InvalidArgument(attribute.name, value, "a text without '@', '/', ':' and spaces")


def _is_natural(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgument(attribute.name, value, "a whole number from 0")


@attrs.frozen
class Branch:
    """A part of history that one primary wrote.

    :ivar id: its name, as unique as the server can make it.
    :ivar start: the offset at which it left the branch before it; 0 of the first.
    """

    id: str = attrs.field(validator=_is_plain)
    start: int = attrs.field(default=0, validator=_is_natural)

    def __str__(self) -> str:
        """Return it as positions are written."""
        return f"{self.id}@{self.start}"


@attrs.frozen
class Position:
    """How much a server has: everything up to an offset of the last branch.

    :ivar history: the branches from the first to the one it is on; at least one.
    :ivar offset: in the server's own units, bytes mostly.
    """

    history: tuple[Branch, ...] = attrs.field()
    offset: int = attrs.field(validator=_is_natural)

    @history.validator
    def _is_history(self, attribute: attrs.Attribute[tuple[Branch, ...]], value: object) -> None:
        if not isinstance(value, tuple) or not value:
            raise InvalidArgument("history", value, "a tuple of at least one Branch")

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        return f"{'/'.join(map(str, self.history))}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position whose text this is.

        :raises InvalidArgument: it is none.
        """
        try:
            branches, offset = text.rsplit(":", 1)
            pairs = [branch.split("@") for branch in branches.split("/")]
            return cls(tuple(Branch(name, int(start)) for name, start in pairs), int(offset))
        except (ValueError, AttributeError) as error:
            raise InvalidArgument("position", text, _FORM) from error


def compare(one: Position, other: Position) -> Relation:
    """Return how ``one`` stands to ``other``: BEHIND means that ``other`` has all of it, and more.

    Two branches of the same name that start at different offsets are different branches.
    """
    shared = _shared(one, other)
    if not shared:
        return Relation.UNRELATED
    at, to = _offset_on(one, shared), _offset_on(other, shared)
    beyond = len(one.history) > shared, len(other.history) > shared
    if beyond == (True, True):
        return Relation.DIVERGED
    if beyond == (True, False):
        return Relation.AHEAD if other.offset <= at else Relation.DIVERGED
    if beyond == (False, True):
        return Relation.BEHIND if one.offset <= to else Relation.DIVERGED
    if at == to:
        return Relation.EQUAL
    return Relation.BEHIND if at < to else Relation.AHEAD


def trunk(position: Position, recorded: Position) -> tuple[int, int]:
    """Return how much it has of the recorded history: which branch of it, and up to which offset.

    What lies on a branch that nobody recorded was never open for writers, and counts nothing. Two
    positions that follow the recorded one are ordered by this.
    """
    shared = _shared(position, recorded)
    return shared, _offset_on(position, shared) if shared else 0


def _shared(one: Position, other: Position) -> int:
    """Return how many branches they have in common, from the first."""
    count = 0
    for mine, theirs in zip(one.history, other.history, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _offset_on(position: Position, shared: int) -> int:
    """Return up to where it follows the last of the shared branches."""
    if len(position.history) > shared:
        return position.history[shared].start
    return position.offset
