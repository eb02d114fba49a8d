"""The fencing token: what a store compares to tell a new leader from a stale one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import total_ordering
from typing import Final

import attrs

from zkelect.errors import InvalidArgument, LineageMismatch, TokenConflict

__all__ = ["Token"]

_WIRE: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{16})-([0-9a-f]{16})-([0-9a-f]{16})\Z")
_FORM: Final = "gggggggg-cccccccccccccccc-llllllllllllllll-hhhhhhhhhhhhhhhh, lower-case hex"
_UINT64: Final = 0xFFFF_FFFF_FFFF_FFFF


def _uint(bits: int) -> Callable[[object, attrs.Attribute[int], int], None]:
    def check(_: object, attribute: attrs.Attribute[int], value: int) -> None:
        if not isinstance(value, int) or not 0 <= value < 1 << bits:
            raise InvalidArgument(attribute.name, value, f"an integer in 0 … 2^{bits}-1")

    return check


def _hex16(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{16}", value):
        raise InvalidArgument(attribute.name, value, "16 lower-case hex digits")


@total_ordering
@attrs.frozen(kw_only=True, order=False)
class Token:
    """One leader's term, as a value that guarded stores can order.

    Tokens rise from leader to leader. Within one lineage they order by
    ``(generation, czxid)``; a later leader always has the greater one, because
    czxid is the zxid of the candidate's own create: 64-bit, strictly
    increasing inside one ensemble, also across changes of its leader
    (ZooKeeper Internals, "Guarantees, Properties, and Definitions"; M. Kleppmann,
    "How to do distributed locking", 2016, for the idea of the fence).

    :param lineage: first 16 hex digits of the record's uuid: which history the
        numbers belong to.
    :param generation: 0 … 2^32-1; an operator's ``adopt`` raises it.
    :param czxid: 0 … 2^64-1; orders the leaders of one generation.
    :param holder: 16 hex digits that identify the session without giving away
        its id: whoever knows the id can close the session.
    :raises InvalidArgument: a field is outside its range.
    """

    lineage: str = attrs.field(validator=_hex16)
    generation: int = attrs.field(validator=_uint(32))
    czxid: int = attrs.field(validator=_uint(64))
    holder: str = attrs.field(validator=_hex16)

    @classmethod
    def issue(cls, *, lineage: str, generation: int, czxid: int, session_id: int) -> Token:
        """Make the token of the candidate that ``session_id`` created at ``czxid``."""
        secret = f"{lineage}:{session_id & _UINT64:016x}".encode("ascii")
        holder = hashlib.sha256(secret).hexdigest()[:16]
        return cls(lineage=lineage, generation=generation, czxid=czxid, holder=holder)

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read the wire form; inverse of ``str``.

        :raises InvalidArgument: not exactly that form; nothing is guessed.
        """
        match = _WIRE.match(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidArgument("token", text, f"the form is {_FORM}")
        generation, czxid, lineage, holder = match.groups()
        return cls(
            lineage=lineage, generation=int(generation, 16), czxid=int(czxid, 16), holder=holder
        )

    def __str__(self) -> str:
        """Fixed width, so that within one lineage text order is token order."""
        return f"{self.generation:08x}-{self.czxid:016x}-{self.lineage}-{self.holder}"

    def __lt__(self, other: object) -> bool:
        """Order by ``(generation, czxid)``.

        :raises LineageMismatch: the tokens come from two histories.
        :raises TokenConflict: same place in the order, two holders.
        """
        if not isinstance(other, Token):
            return NotImplemented
        if self.lineage != other.lineage:
            raise LineageMismatch(store="token", domain="comparison", token=self, mark=other)
        if self._order == other._order and self.holder != other.holder:
            raise TokenConflict(store="token", domain="comparison", token=self, mark=other)
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, int]:
        return self.generation, self.czxid
