"""The history of an election: the terms that have ended, and what operators did, in one list.

Terms and acts have separate limits, so neither pushes the other out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from zkelect.core.acts import Act, act_fields, read_act
from zkelect.core.page import dump, load
from zkelect.core.record import Term, read_term, term_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.token import Token

__all__ = [
    "ACTS_SIZE",
    "HISTORY_LENGTH",
    "HISTORY_SIZE",
    "decode_events",
    "decode_history",
    "extend_history",
    "is_closed",
]

HISTORY_LENGTH: Final = 100
"""So many terms are kept, and so many acts."""

HISTORY_SIZE: Final = 2**18
"""The most bytes of history: with long names a hundred terms would pass what a server
takes in one request (jute.maxbuffer, 1 MB), and it closes the connection then."""

ACTS_SIZE: Final = HISTORY_SIZE // 4
"""The most bytes of it that acts take; terms may have what these leave."""

_Numbered = tuple[int, bytes]


def extend_history(data: bytes, event: Term | Act) -> bytes:
    """Return the history's bytes with one more term or act; the same token's row is replaced.

    The oldest of a kind are left out when there would be too many of it, or too large. The rows
    that stay are carried over as they are: a leader writes this between its last act and the
    delete of its znode, and its heir waits meanwhile.
    """
    written = act_fields(event) if isinstance(event, Act) else term_fields(event)
    old = (row for row in _rows(data) if not _is_same_term(row, written))
    rows = [*old, written]
    texts = [*enumerate(map(dump, rows))]
    acts = _latest([text for text in texts if _is_act(rows[text[0]])], ACTS_SIZE)
    left = HISTORY_SIZE - _size(acts) - len("[]")
    terms = _latest([text for text in texts if not _is_act(rows[text[0]])], left)
    return b"[" + b",".join(text for _, text in sorted([*acts, *terms])) + b"]"


def decode_events(data: bytes) -> tuple[Term | Act, ...]:
    """Read the history, oldest first: each term where it ended; what is neither is left out."""
    read = (read_act(row) or read_term(row) for row in _list(data))
    return tuple(event for event in read if event is not None)


def decode_history(data: bytes) -> tuple[Term, ...]:
    """Read the terms of the history, oldest first."""
    return tuple(term for term in map(read_term, _list(data)) if term is not None)


def is_closed(data: bytes, token: Token) -> bool:
    """Whether the history has a row of this token: only ends are written there."""
    text = str(token)
    return any(row.get("token") == text for row in _rows(data))


def _latest(texts: list[_Numbered], size: int) -> list[_Numbered]:
    """Return the last hundred, or fewer, as many as fit into so many bytes."""
    kept = texts[-HISTORY_LENGTH:]
    while _size(kept) > size:
        del kept[0]
    return kept


def _size(texts: Sequence[_Numbered]) -> int:
    """Return how many bytes they take, a comma for each included."""
    return sum(len(text) for _, text in texts) + len(texts)


def _is_act(row: dict[str, Any]) -> bool:
    """Whether it counts with the acts: so does what a later version may add beside the terms."""
    return "token" not in row


def _is_same_term(row: dict[str, Any], written: dict[str, Any]) -> bool:
    return "token" in written and row.get("token") == written["token"]


def _rows(data: bytes) -> list[dict[str, Any]]:
    """Return what may be carried over: flat objects, since each is written anew each time."""
    return [row for row in _list(data) if isinstance(row, dict) and _is_flat(row)]


def _is_flat(row: dict[str, Any]) -> bool:
    return not any(isinstance(value, list | dict) for value in row.values())


def _list(data: bytes) -> list[Any]:
    rows = load(data)
    return rows if isinstance(rows, list) else []
