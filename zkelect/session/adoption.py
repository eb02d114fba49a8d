"""A new history for an election: an operator's answer to an ensemble wiped or restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from zkelect.core.record import adopted, decode_record, encode_record, record_path
from zkelect.errors import (
    InvalidArgument,
    LeaderPresent,
    NothingToAdopt,
    PermissionDenied,
    RequestFailed,
)
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault, Put, Stat
from zkelect.session.roll import read_leader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.core.record import Record
    from zkelect.core.znodes import Dialect
    from zkelect.session.session import Session
    from zkelect.token import Token

__all__ = ["adopt"]

_TRIES: Final = 5


def adopt(
    session: Session, path: str, dialect: Dialect, marks: Sequence[Token], timeout: float
) -> int:
    """Write the record that puts this election's tokens above the marks; return its generation.

    Written at the version that was read, so that of two operators one does it. A leader that
    is elected meanwhile learns it at its next probe and stands again; its old token no store
    accepts.
    """
    _refuse_leader(session, path, dialect, timeout)
    for _ in range(_TRIES):
        present = _read(session, path, timeout)
        record = adopted(present, marks, zxid=session.zxid)
        if record is None:
            raise NothingToAdopt(path, max(marks), present.generation)
        if _write(session, path, record, timeout):
            return record.generation
    raise RequestFailed(record_path(path), "adopt", f"it was changed {_TRIES} times meanwhile")


def _refuse_leader(session: Session, path: str, dialect: Dialect, timeout: float) -> None:
    leader = read_leader(session, path, dialect, timeout)
    if leader is not None and leader.token is not None:
        raise LeaderPresent(path, leader.name, leader.token)


def _read(session: Session, path: str, timeout: float) -> Record:
    answer = ask(session, lambda g, done: g.get(record_path(path), done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        expected = "an election that somebody has stood for: its record is made by a candidate"
        raise InvalidArgument("path", path, expected)
    data, stat = _value(session, record_path(path), "read", answer)
    record = decode_record(data, stat.version)
    if record is None:
        raise RequestFailed(record_path(path), "adopt", "its data are no record of ours")
    return record


def _write(session: Session, path: str, record: Record, timeout: float) -> bool:
    """Whether it is written now, by us or, if our answer was lost, by our first try."""
    put = Put(path=record_path(path), data=encode_record(record), version=record.version)
    answer = ask(session, lambda g, done: g.multi([put], done), timeout)
    item = answer if isinstance(answer, Failure) else answer[0]
    if isinstance(item, Failure) and item.fault is Fault.BAD_VERSION:
        return _read(session, path, timeout) == record
    _value(session, record_path(path), "write", item)
    return True


def _value(session: Session, path: str, request: str, answer: Any) -> tuple[bytes, Stat]:
    if not isinstance(answer, Failure):
        value: tuple[bytes, Stat] = answer
        return value
    if answer.fault is Fault.DENIED:
        raise PermissionDenied(path, request, session.schemes) from answer.cause
    raise RequestFailed(path, request, str(answer)) from answer.cause
