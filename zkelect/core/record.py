"""What is written beside an election: the record, and the present term."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import attrs

from zkelect.core.eviction import Eviction, decode_evictions, encode_evictions
from zkelect.core.page import dump, load
from zkelect.core.pause import Pause, decode_pause, encode_pause
from zkelect.errors import InvalidArgument, ZkelectError
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "RECORD_SUFFIX",
    "Record",
    "Term",
    "TermPhase",
    "adopted",
    "decode_record",
    "decode_term",
    "encode_record",
    "encode_term",
    "read_term",
    "record_path",
    "term_fields",
]

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
    :param evictions: written by ``evict`` alone: who is asked to go.
    :param version: the znode's version, checked by every probe; not part of the data.
    """

    uuid: str
    generation: int = 1
    paused: Pause | None = None
    evictions: tuple[Eviction, ...] = ()
    version: int = attrs.field(default=0, eq=False)

    @property
    def lineage(self) -> str:
        """First 16 hex digits of the uuid."""
        return self.uuid[:16]

    def is_same_history(self, other: Record | None) -> bool:
        """Whether the tokens of both belong together; a pause changes nothing about that."""
        return other is not None and (self.uuid, self.generation) == (other.uuid, other.generation)

    def evicts(self, node: str) -> bool:
        """Whether the candidate of that znode is asked to go."""
        return any(eviction.node == node for eviction in self.evictions)


@attrs.frozen(kw_only=True)
class Term:
    """One leader's time in office.

    :param since: wall clock, seconds since 1970: for people, never compared.
    :param count: how many terms there have been, this one included.
    :param ended: wall clock of the end, None while it lasts.
    :param reason: why it ended, None while it lasts.
    :param longest_lease: seconds after which a lease of it is over that nothing renews, when
        each probe of its session checks the election's record; None: not each does, or it is
        of a version that did not write this.
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
    longest_lease: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(_instant)
    )


def record_path(path: str) -> str:
    """Return the record's path: beside the candidates' parent, never inside it.

    Peers of other libraries read every child of the parent.
    """
    return path + RECORD_SUFFIX


def encode_record(record: Record) -> bytes:
    """Return the record as the bytes of its znode."""
    fields: dict[str, Any] = {"uuid": record.uuid, "generation": record.generation}
    fields["paused"] = encode_pause(record.paused)
    if record.evictions:
        fields["evictions"] = encode_evictions(record.evictions)
    return dump(fields)


def decode_record(data: bytes, version: int) -> Record | None:
    """Read a record; None when the bytes are not one, or no token can be made of it."""
    fields = load(data)
    if not isinstance(fields, dict):
        return None
    uuid, generation = fields.get("uuid"), fields.get("generation")
    if not isinstance(uuid, str) or _UUID.fullmatch(uuid) is None:
        return None
    if type(generation) is not int or not 0 <= generation <= _LAST_GENERATION:
        return None
    return Record(
        uuid=uuid,
        generation=generation,
        paused=decode_pause(fields.get("paused")),
        evictions=decode_evictions(fields.get("evictions")),
        version=version,
    )


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
    return dump(term_fields(term))


def decode_term(data: bytes) -> Term | None:
    """Read a term; None when the bytes are not one (nobody has led yet)."""
    return read_term(load(data))


def term_fields(term: Term) -> dict[str, Any]:
    """Return the term as an object of JSON."""
    fields = attrs.asdict(term, recurse=False)
    return {**fields, "token": str(term.token), "phase": str(term.phase)}


def read_term(fields: Any) -> Term | None:
    """Read a term from such an object; None when it is none."""
    if not isinstance(fields, dict):
        return None
    known = {name: fields[name] for name in attrs.fields_dict(Term) if name in fields}
    try:
        token, phase = Token.parse(known["token"]), TermPhase(known["phase"])
        return Term(**{**known, "token": token, "phase": phase})
    except (KeyError, TypeError, ValueError, ZkelectError):
        return None
