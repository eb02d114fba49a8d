"""The election's record, as an operator reads and writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zkelect.core.record import decode_record, encode_record, record_path
from zkelect.errors import InvalidArgument, PermissionDenied, RequestFailed
from zkelect.session.asking import ask
from zkelect.session.gateway import Check, Failure, Fault, Put, Stat

if TYPE_CHECKING:
    from zkelect.core.record import Record
    from zkelect.session.session import Session

__all__ = ["confirm_record", "read_record", "write_record"]


def read_record(session: Session, path: str, act: str, timeout: float) -> Record:
    """Return the record.

    :param act: what it is read for, in the error if it is no record.
    :raises InvalidArgument: nobody has ever stood for this election.
    """
    answer = ask(session, lambda g, done: g.get(record_path(path), done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        expected = "an election that somebody has stood for: its record is made by a candidate"
        raise InvalidArgument("path", path, expected)
    data, stat = _value(session, record_path(path), "read", answer)
    record = decode_record(data, stat.version)
    if record is None:
        raise RequestFailed(record_path(path), act, "its data are no record of ours")
    return record


def write_record(session: Session, path: str, record: Record, act: str, timeout: float) -> bool:
    """Write a record at the version it has, which is the one that was read.

    Whether it is written now, by us or, if our answer was lost, by our first try.
    """
    put = Put(path=record_path(path), data=encode_record(record), version=record.version)
    if _commit(session, put, timeout):
        return True
    return read_record(session, path, act, timeout) == record


def confirm_record(session: Session, path: str, record: Record, timeout: float) -> bool:
    """Whether that is the record by a quorum's word; who was read from may lag."""
    return _commit(session, Check(path=record_path(path), version=record.version), timeout)


def _commit(session: Session, operation: Put | Check, timeout: float) -> bool:
    """False when the record has another version by now."""
    answer = ask(session, lambda g, done: g.multi([operation], done), timeout)
    item = answer if isinstance(answer, Failure) else answer[0]
    if isinstance(item, Failure) and item.fault is Fault.BAD_VERSION:
        return False
    _value(session, operation.path, "write", item)
    return True


def _value(session: Session, path: str, request: str, answer: Any) -> tuple[bytes, Stat]:
    if not isinstance(answer, Failure):
        value: tuple[bytes, Stat] = answer
        return value
    if answer.fault is Fault.DENIED:
        raise PermissionDenied(path, request, session.schemes) from answer.cause
    raise RequestFailed(path, request, str(answer)) from answer.cause
