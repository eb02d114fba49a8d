"""The election's record, as an operator reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.core.record import decode_record, record_path
from zkelect.errors import InvalidArgument, RequestFailed
from zkelect.session.asking import ask
from zkelect.session.gateway import Check, Failure, Fault
from zkelect.session.pages import commit, is_committed, value_of

if TYPE_CHECKING:
    from zkelect.core.record import Record
    from zkelect.session.session import Session

__all__ = ["confirm_record", "never_stood", "read_record"]


def never_stood(path: str) -> InvalidArgument:
    """Return the error for an election without a record: the first candidate of ours makes it."""
    expected = (
        "no candidate of this library has ever stood for such an election; look at the path, and "
        "at the chroot of the session"
    )
    return InvalidArgument("path", path, expected)


def read_record(session: Session, path: str, act: str, timeout: float) -> Record:
    """Return the record.

    :param act: what it is read for, in the error if it is no record.
    :raises InvalidArgument: nobody has ever stood for this election.
    """
    answer = ask(session, lambda g, done: g.get(record_path(path), done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        raise never_stood(path)
    data, stat = value_of(session, record_path(path), "read", answer)
    record = decode_record(data, stat.version)
    if record is None:
        raise RequestFailed(record_path(path), act, "its data are no record of ours")
    return record


def confirm_record(session: Session, path: str, record: Record, timeout: float) -> bool:
    """Whether that is the record by a quorum's word; who was read from may lag."""
    check = Check(path=record_path(path), version=record.version)
    return is_committed(session, commit(session, [check], timeout), Fault.BAD_VERSION)
