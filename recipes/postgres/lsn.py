"""Positions in the write-ahead log, and the names of the files that hold them."""

from __future__ import annotations

import re
from typing import Final, Self

import attrs

from zkelect import InvalidArgument

__all__ = ["Lsn", "segment_name"]

_FORM: Final = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})", re.IGNORECASE)


@attrs.frozen(order=True)
class Lsn:
    """A log sequence number: a byte of the WAL, ordered; written ``16/B374D848``.

    Two of them may be compared only along one history; see :mod:`.timelines`.

    :ivar byte: its distance from the beginning of the log.
    """

    byte: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read PostgreSQL's form, ``pg_lsn``.

        :raises InvalidArgument: the text has another form.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise InvalidArgument("lsn", text, "two hexadecimal numbers with a slash, 16/B374D848")
        high, low = found.groups()
        return cls(int(high, 16) << 32 | int(low, 16))

    def __str__(self) -> str:
        return f"{self.byte >> 32:X}/{self.byte & 0xFFFFFFFF:X}"

    def __sub__(self, other: Lsn) -> int:
        """Return the bytes from the other one to this one."""
        return self.byte - other.byte


def segment_name(timeline: int, at: Lsn, segment_size: int) -> str:
    """Return the name of the file in ``pg_wal`` that holds the byte at this position.

    :param segment_size: bytes of a file, a power of two (``wal_segment_size``).
    """
    number = at.byte // segment_size
    high, low = divmod(number, 0x1_0000_0000 // segment_size)
    return f"{timeline:08X}{high:08X}{low:08X}"
