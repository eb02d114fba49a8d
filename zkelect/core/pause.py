"""Pauses: an operator's word, in the election's record, that nobody new shall lead."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import attrs

__all__ = ["Pause", "decode_pause", "encode_pause"]

_LATEST: Final = 253402300799
"""The end of the year 9999: what comes after it has no date."""


@attrs.frozen(kw_only=True)
class Pause:
    """While it stands in the record nobody is elected; who leads, stays.

    :ivar by: who paused the election. :ivar why: the reason, empty when none was given.
    :ivar since: wall clock, seconds since 1970: for people, never compared.
    """

    by: str
    why: str = ""
    since: float = 0.0

    def __str__(self) -> str:
        """Say it as messages do."""
        since = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        why = f": {self.why}" if self.why else ""
        return f"paused by {self.by!r} since {since}{why}"


def encode_pause(pause: Pause | None) -> dict[str, Any] | None:
    """Return it as the record has it."""
    return None if pause is None else attrs.asdict(pause)


def decode_pause(fields: Any) -> Pause | None:
    """Read it from the record; None: not paused.

    A pause that somebody has written by hand may be of any form, ``true`` included: what
    cannot be read of it is left out, and it is a pause all the same.
    """
    if fields is None or fields is False:
        return None
    known = fields if isinstance(fields, dict) else {}
    since = known.get("since")
    return Pause(
        by=_text(known.get("by")),
        why=_text(known.get("why")),
        since=since if isinstance(since, int | float) and 0 <= since <= _LATEST else 0.0,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
