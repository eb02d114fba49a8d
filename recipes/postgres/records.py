"""Where a record of the WAL ends, by the length that it begins with.

Each page begins with a header, a longer one at the start of a file, and a record that does not fit
goes on behind the next one (PostgreSQL, "WAL Internals", ``access/xlog_internal.h`` and
``access/xlogrecord.h`` of version 15).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.recipes.postgres.agreement import names_of
from zkelect.recipes.postgres.asking import ask
from zkelect.recipes.postgres.lsn import Lsn

if TYPE_CHECKING:
    from zkelect.recipes.position import Position
    from zkelect.recipes.postgres.place import Place

__all__ = ["Layout", "is_torn"]

_LAYOUT: Final = "select bytes_per_wal_segment, wal_block_size from pg_control_init()"
_PAGE_HEADER: Final = 24
_FILE_HEADER: Final = 40
_SHORTEST: Final = 24
_LENGTH: Final = 4


@attrs.frozen
class Layout:
    """How the WAL lies in files.

    :ivar segment: bytes of a file. :ivar page: of a page.
    """

    segment: int
    page: int

    def begin(self, at: int) -> int:
        """Return where what is written next at this byte begins: behind a header, if one is due."""
        if at % self.page:
            return at
        return at + (_PAGE_HEADER if at % self.segment else _FILE_HEADER)

    def end(self, at: int, length: int) -> int:
        """Return the first byte behind a record of that length that begins there."""
        at = self.begin(at)
        while (room := self.page - at % self.page) < length:
            at, length = self.begin(at + room), length - room
        return at + length


def is_torn(place: Place, position: Position, *, after: Lsn, end: Lsn, deadline: float) -> bool:
    """Tell whether the record after a byte goes beyond the end of what has been received.

    :param position: where the server stands; it says on which timelines it is.
    :raises NoAnswer: the server does not tell how its files are.
    """
    layout = Layout(*ask(place.local, _LAYOUT, deadline))
    begin = layout.begin(after.byte)
    if begin + _LENGTH > end.byte:
        return True
    length = _read_length(place, position, begin, layout)
    return length >= _SHORTEST and layout.end(begin, length) > end.byte


def _read_length(place: Place, position: Position, at: int, layout: Layout) -> int:
    """Return the length that the record there begins with, 0 if it is not to be read."""
    for name in names_of(position, Lsn(at), layout.segment):
        try:
            with (place.data_directory / "pg_wal" / name).open("rb") as file:
                file.seek(at % layout.segment)
                return int.from_bytes(file.read(_LENGTH), sys.byteorder)
        except FileNotFoundError:
            continue
    return 0
