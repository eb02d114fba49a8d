"""What is written beside an election: the record, the present term, the history.

All three are JSON objects, so that a person can read them with any client; numbers
that could outgrow a float travel inside the token's hex text.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final

import attrs

from zkelect.errors import ZkelectError
from zkelect.token import Token

__all__ = [
    "HISTORY_LENGTH",
    "RECORD_SUFFIX",
    "Record",
    "Term",
    "TermPhase",
    "append",
    "decode_history",
    "decode_record",
    "decode_term",
    "encode_history",
    "encode_record",
    "encode_term",
    "record_path",
]

HISTORY_LENGTH: Final = 100
RECORD_SUFFIX: Final = ".zkelect"


class TermPhase(StrEnum):
    """Whether the leader serves already, or still catches up."""

    PREPARING = "preparing"
    SERVING = "serving"


@attrs.frozen(kw_only=True)
class Record:
    """The election's identity: which history its tokens belong to.

    :param uuid: 32 hex digits; its first 16 are the tokens' lineage.
    :param generation: raised by ``adopt`` alone.
    :param version: the znode's version, checked by every probe; not part of the data.
    """

    uuid: str
    generation: int = 1
    version: int = attrs.field(default=0, eq=False)

    @property
    def lineage(self) -> str:
        """First 16 hex digits of the uuid."""
        return self.uuid[:16]


@attrs.frozen(kw_only=True)
class Term:
    """One leader's time in office.

    :param since: wall clock, seconds since 1970: for people, never compared.
    :param count: how many terms there have been, this one included.
    :param ended: wall clock of the end, None while it lasts.
    :param reason: why it ended, None while it lasts.
    """

    token: Token
    node: str
    name: str
    address: str = ""
    phase: TermPhase = TermPhase.SERVING
    since: float = 0.0
    count: int = 1
    ended: float | None = None
    reason: str | None = None


def record_path(path: str) -> str:
    """Return the record's path: beside the candidates' parent, never inside it.

    Peers of other libraries read every child of the parent.
    """
    return path + RECORD_SUFFIX


def encode_record(record: Record) -> bytes:
    """Return the record as the bytes of its znode."""
    return _dump({"uuid": record.uuid, "generation": record.generation})


def decode_record(data: bytes, version: int) -> Record | None:
    """Read a record; None when the bytes are not one."""
    fields = _load(data)
    if not isinstance(fields, dict):
        return None
    uuid, generation = fields.get("uuid"), fields.get("generation")
    if not (isinstance(uuid, str) and len(uuid) == 32 and isinstance(generation, int)):
        return None
    return Record(uuid=uuid, generation=generation, version=version)


def encode_term(term: Term) -> bytes:
    """Return the term as the bytes of its znode."""
    return _dump(_fields_of(term))


def decode_term(data: bytes) -> Term | None:
    """Read a term; None when the bytes are not one (nobody has led yet)."""
    return _term_of(_load(data))


def encode_history(history: tuple[Term, ...]) -> bytes:
    """Return the history, oldest first, as the bytes of its znode."""
    return _dump([_fields_of(term) for term in history])


def decode_history(data: bytes) -> tuple[Term, ...]:
    """Read the history, oldest first; what is no term is left out."""
    fields = _load(data)
    rows = fields if isinstance(fields, list) else []
    return tuple(term for term in map(_term_of, rows) if term is not None)


def append(history: tuple[Term, ...], term: Term) -> tuple[Term, ...]:
    """Return the history with one more term; a term of the same token is replaced."""
    others = tuple(old for old in history if old.token != term.token)
    return (*others, term)[-HISTORY_LENGTH:]


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
    except ValueError:
        return None
