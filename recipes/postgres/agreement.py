"""Whether two servers' WAL is the same up to a position, by its bytes.

Histories with equal forks may still be two: two standbys promoted at the same byte, each to
timeline 2. Each WAL record carries times and transaction numbers of its own, so the last segment
before the position tells them apart.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from zkelect.recipes.postgres.asking import ask
from zkelect.recipes.postgres.lsn import Lsn, segment_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.recipes.position import Position
    from zkelect.recipes.postgres.place import Place

__all__ = ["names_of", "same_bytes"]

_SEGMENT_SIZE: Final = "select bytes_per_wal_segment from pg_control_init()"
_DIGEST: Final = "select sha256(pg_read_binary_file(%s, 0, %s, true))"  # null: no such file


def same_bytes(
    place: Place, source: str, ours: Position, theirs: Position, deadline: float
) -> bool | None:
    """Compare the last segment of our WAL, up to our position, with the source's.

    :param source: the connection string of a server that has our position in its history.
    :returns: None when one of the two does not have that segment any more.
    """
    (size,) = ask(source, _SEGMENT_SIZE, deadline)
    last = Lsn(max(ours.offset - 1, 0))
    length = last.byte % size + 1
    mine = _our_digest(place, names_of(ours, last, size), length)
    if mine is None:
        return None
    for name in names_of(theirs, last, size):
        (digest,) = ask(source, _DIGEST, deadline, f"pg_wal/{name}", length)
        if digest is not None:
            return bool(digest == mine)
    return None


def names_of(position: Position, at: Lsn, size: int) -> Iterator[str]:
    """Yield what the segment may be called, the latest timeline first.

    A new timeline begins with a copy of the segment in which the old one was left.
    """
    for branch in reversed(position.history):
        yield segment_name(int(branch.id.rpartition("-")[2]), at, size)


def _our_digest(place: Place, names: Iterator[str], length: int) -> bytes | None:
    for name in names:
        try:
            with (place.data_directory / "pg_wal" / name).open("rb") as file:
                return hashlib.sha256(file.read(length)).digest()
        except FileNotFoundError:
            continue
    return None
