"""Evictions: an operator's word, in the election's record, that a candidate shall go.

It stands in the record itself, and not on a page of its own. Each probe checks the version of
the record, and whoever may be granted has read the record; so once the word is committed:

* No lease of that candidate is renewed any more. A probe that is committed after it fails, for
  the version it checks is an old one. The next that succeeds checks the new version, and so
  comes behind a read of the word. Every earlier one was sent before the word was committed, and
  a lease ends at the latest one session timeout after the sending of the probe that renewed it
  (:mod:`zkelect.core.lease`). So it is over one session timeout after the commit of the word,
  whether the leader has heard of it or hangs, and on whatever side of a broken network it is.
* It is not granted. Who may lead next hears of a change of the record before it hears that it
  may (:func:`zkelect.core.moves.look_if_next`).

A page beside the record would have to be read again behind each read of the record, also by
all who join, to say the same.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

__all__ = ["Eviction", "decode_evictions", "encode_evictions"]

_LONGEST: Final = 1000
"""So many characters of each text are kept: everybody reads them with the record."""

_LATEST: Final = 253402300799
"""The end of the year 9999: what comes after it has no date."""


def _kept(text: str) -> str:
    return text[:_LONGEST]


@attrs.frozen(kw_only=True)
class Eviction:
    """While it stands in the record its candidate is not granted, and renews no lease.

    Of a znode that is gone it says nothing any more.

    :ivar id: tells it from any other. :ivar node: the candidate's znode.
    :ivar by: who asked. :ivar why: the reason, empty when none was given.
    :ivar since: wall clock, seconds since 1970: for people, never compared.
    """

    id: str
    node: str
    by: str = attrs.field(default="", converter=_kept)
    why: str = attrs.field(default="", converter=_kept)
    since: float = 0.0

    def __str__(self) -> str:
        """Say it as messages do."""
        why = f": {self.why}" if self.why else ""
        return f"asked to go by {self.by!r}{why}"


def encode_evictions(evictions: tuple[Eviction, ...]) -> list[dict[str, Any]]:
    """Return them as the record has them."""
    return [attrs.asdict(eviction) for eviction in evictions]


def decode_evictions(rows: Any) -> tuple[Eviction, ...]:
    """Read them from the record, whatever somebody has written there by hand.

    A row without the texts ``id`` and ``node`` is none; else what cannot be read is left out.
    """
    if not isinstance(rows, list):
        return ()
    return tuple(_decode(row) for row in rows if _is_row(row))


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("id", "node"))


def _decode(row: dict[str, Any]) -> Eviction:
    since = row.get("since")
    texts = {key: row[key] for key in ("by", "why") if isinstance(row.get(key), str)}
    instant = since if isinstance(since, int | float) and 0 <= since <= _LATEST else 0.0
    return Eviction(id=row["id"], node=row["node"], since=instant, **texts)
