"""Candidate znodes: how they are named, who is whose predecessor."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

__all__ = ["KAZOO", "LAST_SEQUENCE", "WORN_SEQUENCE", "Dialect", "Entry", "Roll", "is_ours"]

LAST_SEQUENCE: Final = 2**31 - 2
"""The last number that can be trusted: at 2^31-1 the parent's counter sticks or turns
negative, and libraries disagree on the order (ZOOKEEPER-2101, kazoo #730)."""

WORN_SEQUENCE: Final = 2**30
"""From here on operators are warned: half of the numbers are used up."""

_OURS: Final = re.compile(r"[0-9a-f]{12}8[0-9a-f]{3}[89ab][0-9a-f]{15}\Z")


@attrs.frozen(kw_only=True)
class Entry:
    """One candidate's place in the queue, as its znode's name tells it.

    :param node: the name below the parent. :param sequence: the server's number;
        negative once the counter has overflowed.
    :param uuid: what stands before the dialect's mark: tells whose create it was.
    """

    node: str
    sequence: int
    uuid: str

    @property
    def exhausted(self) -> bool:
        """Whether the number is outside the range in which order can be told."""
        return not 0 <= self.sequence <= LAST_SEQUENCE


@attrs.frozen(kw_only=True)
class Dialect:
    """How one library names its candidates.

    :param name: what users call it. :param infix: what stands between uuid and number.
    """

    name: str
    infix: str

    def prefix(self, uuid: str) -> str:
        """Return the name to hand to a sequential create."""
        return f"{uuid}{self.infix}"

    def parse(self, child: str) -> Entry | None:
        """Read one child's name; None when it is not of this dialect.

        Java pads with ``%010d``: a negative number has nine or ten digits.
        """
        match = re.fullmatch(rf"(.*){re.escape(self.infix)}(-?[0-9]{{10}}|-[0-9]{{9}})", child)
        if match is None:
            return None
        return Entry(node=child, sequence=int(match[2]), uuid=match[1])

    def read(self, children: Iterable[str]) -> Roll:
        """Put a parent's children in order; what is no candidate is kept aside."""
        entries, strangers = [], []
        for child in children:
            entry = self.parse(child)
            if entry is None:
                strangers.append(child)
            else:
                entries.append(entry)
        entries.sort(key=lambda entry: (entry.sequence, entry.node))
        return Roll(entries=tuple(entries), strangers=tuple(strangers))


KAZOO: Final = Dialect(name="kazoo", infix="__lock__")
"""The name shape of kazoo's Election and Lock: old and new processes share one queue."""


@attrs.frozen(kw_only=True)
class Roll:
    """The candidates in order at one instant, first the leader; strangers aside."""

    entries: tuple[Entry, ...]
    strangers: tuple[str, ...] = ()

    def find(self, node: str) -> Entry | None:
        """Return the entry with that name, or None."""
        return next((entry for entry in self.entries if entry.node == node), None)

    def ahead_of(self, own: Entry) -> tuple[Entry, ...]:
        """Return those before ``own`` in order; the last one is its predecessor."""
        return tuple(entry for entry in self.entries if entry.sequence < own.sequence)

    def of(self, uuid: str) -> tuple[Entry, ...]:
        """Return the entries made by one campaign, lowest first."""
        return tuple(entry for entry in self.entries if entry.uuid == uuid)

    @property
    def exhausted(self) -> Entry | None:
        """Return a candidate whose number cannot be ordered, if there is one."""
        return next((entry for entry in self.entries if entry.exhausted), None)


def is_ours(uuid: str) -> bool:
    """Tell a candidate of this library from a peer of another one.

    Ours carry a version 8 UUID (RFC 9562, section 5.8: random, for vendors), kazoo's a
    version 4 one; to kazoo itself both are just a prefix.
    """
    return _OURS.match(uuid) is not None
