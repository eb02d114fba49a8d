"""Operators' acts, written into the history of an election together with what they change."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from zkelect.core.acts import Act, ActKind
from zkelect.core.history import decode_events, extend_history
from zkelect.core.paths import check_name
from zkelect.core.record import encode_record, record_path
from zkelect.errors import RequestFailed
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault, Operation, Put
from zkelect.session.operator import operator
from zkelect.session.pages import Refusal, commit, is_committed, read_page, value_of
from zkelect.session.records import read_record
from zkelect.session.terms import history_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.core.record import Record, Term
    from zkelect.session.session import Session

__all__ = ["commit_act", "new_act", "read_history", "write_record"]

_TRIES: Final = 5


def new_act(kind: ActKind, why: str, by: str | None, target: str = "") -> Act:
    """Return an act of now.

    :param by: who does it; user and host of this process when None.
    :raises InvalidArgument: one of the texts cannot be written.
    """
    by = operator() if by is None else by
    check_name(by, "by")
    check_name(why, "why")
    return Act(kind=kind, by=by, why=why, target=target, at=time.time())


def commit_act(
    session: Session, path: str, operations: Sequence[Operation], act: Act, timeout: float
) -> Refusal | None:
    """Commit the operations and write the act into the history, all or nothing.

    :param timeout: seconds to wait for an answer, each time.
    :returns: None: it is committed, also when the answer was lost: then the act is found in the
        history. Else the operation that was refused; nothing is written then.
    """
    note = history_path(path)
    for _ in range(_TRIES):
        data, stat = read_page(session, note, b"[]", timeout)
        put = Put(path=note, data=extend_history(data, act), version=stat.version)
        refused = commit(session, [*operations, put], timeout)
        if refused is None or act in _read(session, path, timeout):
            return None
        if refused[0] is not put or refused[1].fault is not Fault.BAD_VERSION:
            return refused
    raise RequestFailed(note, "write", f"it was changed {_TRIES} times meanwhile")


def write_record(session: Session, path: str, record: Record, act: Act, timeout: float) -> bool:
    """Write a record at the version it has, which is the one that was read, and the act.

    :returns: False: it has another version by now, and nothing is written.
    """
    put = Put(path=record_path(path), data=encode_record(record), version=record.version)
    refused = commit_act(session, path, [put], act, timeout)
    return is_committed(session, refused, Fault.BAD_VERSION)


def read_history(session: Session, path: str, timeout: float) -> tuple[Term | Act, ...]:
    """Return the terms that have ended and the acts, oldest first.

    :raises InvalidArgument: nobody has ever stood for this election.
    """
    events = _read(session, path, timeout)
    if not events:
        read_record(session, path, "read", timeout)
    return events


def _read(session: Session, path: str, timeout: float) -> tuple[Term | Act, ...]:
    note = history_path(path)
    answer = ask(session, lambda g, done: g.get(note, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        return ()
    return decode_events(value_of(session, note, "read", answer)[0])
