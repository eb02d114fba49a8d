"""What a znode's stat tells those who look after it."""

from __future__ import annotations

from typing import Any

import attrs

from zkelect.core.orphans import next_sequence

__all__ = ["Details", "details_of"]


@attrs.frozen(kw_only=True)
class Details:
    """What an operator wants to know of a znode's stat.

    :ivar owner: the session of an ephemeral one, else 0. :ivar size: of its data, in bytes.
    :ivar created: wall clock of the ensemble's leader, seconds since 1970; so is ``modified``.
    :ivar next_sequence: the number that the next sequential child gets.
    """

    czxid: int
    owner: int
    children: int
    size: int
    created: float
    modified: float
    next_sequence: int


def details_of(stat: Any) -> Details:
    """Return what kazoo's ZnodeStat tells."""
    return Details(
        czxid=stat.czxid,
        owner=stat.ephemeralOwner,
        children=stat.numChildren,
        size=stat.dataLength,
        created=stat.ctime / 1000,
        modified=stat.mtime / 1000,
        next_sequence=next_sequence(stat.cversion, stat.numChildren),
    )
