"""What is written beside an election: the record, the present term, the history.

All three are JSON objects, so that a person can read them with any client; numbers
that could outgrow a float travel inside the token's hex text.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import attrs

from zkelect.core.pause import Pause, decode_pause, encode_pause
from zkelect.errors import InvalidArgument, ZkelectError
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "HISTORY_LENGTH",
    "HISTORY_SIZE",
    "RECORD_SUFFIX",
    "Record",
    "Term",
    "TermPhase",
    "adopted",
    "decode_history",
    "decode_record",
    "decode_term",
    "encode_record",
    "encode_term",
    "extend_history",
    "is_closed",
    "record_path",
]

HISTORY_LENGTH: Final = 100
HISTORY_SIZE: Final = 2**18
"""The most bytes of history: with long names a hundred terms would pass what a server
takes in one request (jute.maxbuffer, 1 MB), and it closes the connection then."""

RECORD_SUFFIX: Final = ".zkelect"
_LAST_GENERATION: Final = 2**32 - 1
_UUID: Final = re.compile(r"[0-9a-f]{32}")
_text: Final = attrs.validators.instance_of(str)
_instant: Final = attrs.validators.instance_of((int, float))


class TermPhase(StrEnum):
    """Whether the leader serves already, or still catches up."""

    PREPARING = "preparing"
    SERVING = "serving"


@attrs.frozen(kw_only=True)
class Record:
    """The election's identity: which history its tokens belong to.

    :param uuid: 32 hex digits; its first 16 are the tokens' lineage.
    :param generation: raised by ``adopt`` alone.
    :param paused: written by ``pause`` and ``resume`` alone; nobody is granted while it is set.
    :param version: the znode's version, checked by every probe; not part of the data.
    """

    uuid: str
    generation: int = 1
    paused: Pause | None = None
    version: int = attrs.field(default=0, eq=False)

    @property
    def lineage(self) -> str:
        """First 16 hex digits of the uuid."""
        return self.uuid[:16]

    def is_same_history(self, other: Record | None) -> bool:
        """Whether the tokens of both belong together; a pause changes nothing about that."""
        return other is not None and (self.uuid, self.generation) == (other.uuid, other.generation)


@attrs.frozen(kw_only=True)
class Term:
    """One leader's time in office.

    :param since: wall clock, seconds since 1970: for people, never compared.
    :param count: how many terms there have been, this one included.
    :param ended: wall clock of the end, None while it lasts.
    :param reason: why it ended, None while it lasts.
    """

    token: Token
    node: str = attrs.field(validator=_text)
    name: str = attrs.field(validator=_text)
    address: str = attrs.field(default="", validator=_text)
    phase: TermPhase = TermPhase.SERVING
    since: float = attrs.field(default=0.0, validator=_instant)
    count: int = attrs.field(default=1, validator=attrs.validators.instance_of(int))
    ended: float | None = attrs.field(default=None, validator=attrs.validators.optional(_instant))
    reason: str | None = attrs.field(default=None, validator=attrs.validators.optional(_text))


def record_path(path: str) -> str:
    """Return the record's path: beside the candidates' parent, never inside it.

    Peers of other libraries read every child of the parent.
    """
    return path + RECORD_SUFFIX


def encode_record(record: Record) -> bytes:
    """Return the record as the bytes of its znode."""
    fields = {"uuid": record.uuid, "generation": record.generation}
    return _dump({**fields, "paused": encode_pause(record.paused)})


def decode_record(data: bytes, version: int) -> Record | None:
    """Read a record; None when the bytes are not one, or no token can be made of it."""
    fields = _load(data)
    if not isinstance(fields, dict):
        return None
    uuid, generation = fields.get("uuid"), fields.get("generation")
    if not isinstance(uuid, str) or _UUID.fullmatch(uuid) is None:
        return None
    if type(generation) is not int or not 0 <= generation <= _LAST_GENERATION:
        return None
    paused = decode_pause(fields.get("paused"))
    return Record(uuid=uuid, generation=generation, paused=paused, version=version)


def adopted(record: Record, marks: Iterable[Token], *, zxid: int) -> Record | None:
    """Return the record whose tokens are above all these marks; None when it already is.

    :param marks: of the stores, all of one lineage. :param zxid: the ensemble's present one:
        a mark above it, of our own generation, is from a history that a restore has undone.
    :raises LineageMismatch: the marks are of several lineages: no token can be above them.
    :raises InvalidArgument: no mark at all, or no generation is left above one.
    """
    highest = max(marks, default=None)
    if highest is None:
        raise InvalidArgument("marks", (), "at least one mark: a store that nobody claimed fits")
    ours = highest.lineage == record.lineage
    if ours and (highest.generation, highest.czxid) <= (record.generation, zxid):
        return None
    generation = max(highest.generation, record.generation if ours else 0) + 1
    if generation > _LAST_GENERATION:
        raise InvalidArgument("marks", str(highest), f"a generation below {_LAST_GENERATION}")
    uuid = highest.lineage + record.uuid[len(highest.lineage) :]
    return attrs.evolve(record, uuid=uuid, generation=generation)


def encode_term(term: Term) -> bytes:
    """Return the term as the bytes of its znode."""
    return _dump(_fields_of(term))


def decode_term(data: bytes) -> Term | None:
    """Read a term; None when the bytes are not one (nobody has led yet)."""
    return _term_of(_load(data))


def extend_history(data: bytes, term: Term) -> bytes:
    """Return the history's bytes with one more term; a row of the same token is replaced.

    The oldest rows are left out when there would be too many, or too large. The rows that
    stay are carried over as they are: a leader writes this between its last act and the
    delete of its znode, and its heir waits meanwhile.
    """
    written = _fields_of(term)
    fields = _load(data)
    rows = filter(_is_row, fields) if isinstance(fields, list) else ()
    others = [row for row in rows if row.get("token") != written["token"]]
    texts = [_dump(row) for row in (*others, written)[-HISTORY_LENGTH:]]
    while sum(map(len, texts)) + len(texts) + 1 > HISTORY_SIZE:
        del texts[0]
    return b"[" + b",".join(texts) + b"]"


def decode_history(data: bytes) -> tuple[Term, ...]:
    """Read the history, oldest first; what is no term is left out."""
    fields = _load(data)
    rows = fields if isinstance(fields, list) else []
    return tuple(term for term in map(_term_of, rows) if term is not None)


def is_closed(data: bytes, token: Token) -> bool:
    """Whether the history has a row of this token: only ends are written there."""
    fields, text = _load(data), str(token)
    rows = filter(_is_row, fields) if isinstance(fields, list) else ()
    return any(row.get("token") == text for row in rows)


def _is_row(row: Any) -> bool:
    """Whether it may be carried over: a flat object, since each is written anew each time."""
    return isinstance(row, dict) and not any(isinstance(v, list | dict) for v in row.values())


def _fields_of(term: Term) -> dict[str, Any]:
    fields = attrs.asdict(term, recurse=False)
    return {**fields, "token": str(term.token), "phase": str(term.phase)}


def _term_of(fields: Any) -> Term | None:
    if not isinstance(fields, dict):
        return None
    known = {name: fields[name] for name in attrs.fields_dict(Term) if name in fields}
    try:
        token, phase = Token.parse(known["token"]), TermPhase(known["phase"])
        return Term(**{**known, "token": token, "phase": phase})
    except (KeyError, TypeError, ValueError, ZkelectError):
        return None


def _dump(fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _load(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
