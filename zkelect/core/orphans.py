"""Candidates behind which nobody stands, and the counter that gives each its number."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from zkelect.core.znodes import is_ours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zkelect.core.znodes import Entry

__all__ = ["Orphan", "find_orphans", "next_sequence"]

_UNSIGNED: Final = 2**32


class Orphan(StrEnum):
    """Why nobody can stand behind a candidate."""

    NOT_EPHEMERAL = "not ephemeral"
    """No session owns it, so it goes with none."""
    SECOND = "its session stands ahead of it"
    """A session of ours stands once for an election: this is left from a lost answer."""


def find_orphans(owners: Mapping[Entry, int]) -> dict[Entry, Orphan]:
    """Return the orphans of a queue, and why they are.

    What a session leaves by a lost answer it deletes itself, within some session timeouts: so
    look again before you say so. Other libraries may stand several times in one session.

    :param owners: the ``ephemeralOwner`` of each candidate, 0 for none.
    """
    orphans: dict[Entry, Orphan] = {}
    standing: set[int] = set()
    for entry in sorted(owners, key=lambda entry: (entry.sequence, entry.node)):
        owner = owners[entry]
        if owner == 0:
            orphans[entry] = Orphan.NOT_EPHEMERAL
        elif is_ours(entry.uuid):
            if owner in standing:
                orphans[entry] = Orphan.SECOND
            standing.add(owner)
    return orphans


def next_sequence(cversion: int, children: int) -> int:
    """Return the number that the next sequential child gets.

    The server counts the creates, and shows them as twice that less the children there are, a
    signed number of 32 bits (``DataNode.copyStat``); so it is negative from 2^30 creates on.

    :param cversion: of the parent's stat. :param children: its ``numChildren``.
    """
    return (cversion + children) % _UNSIGNED // 2
