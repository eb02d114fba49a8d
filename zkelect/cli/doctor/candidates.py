"""Reading one election as it is: who stands, what is written beside it, who may write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from zkelect.cli.doctor.facts import Election, Look
from zkelect.core.record import decode_record, decode_term, record_path
from zkelect.core.znodes import KAZOO, Entry
from zkelect.errors import PermissionDenied, RequestFailed
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault
from zkelect.session.inspection import read_acl, read_details
from zkelect.session.pages import value_of
from zkelect.session.terms import history_path, term_path

if TYPE_CHECKING:
    from zkelect.session.session import Session

__all__ = ["look_at", "read_election"]

_Value = TypeVar("_Value")
_HEAD: Final = 24
"""Bytes of an answer before the names: length, reply header, and how many there are."""


def look_at(session: Session, path: str, timeout: float) -> Look | None:
    """Return who stands now, and the present term; None when we may not read it.

    :param path: below the session's chroot. :param timeout: seconds for each answer.
    """
    try:
        return _look(session, path, timeout)
    except PermissionDenied:
        return None


def _look(session: Session, path: str, timeout: float) -> Look:
    answer: Any = ask(session, lambda g, done: g.children(path, done), timeout)
    children: tuple[str, ...] = (
        () if _is_missing(answer) else value_of(session, path, "read", answer)
    )
    roll = KAZOO.read(children)
    term = _read(session, term_path(path), timeout)
    return Look(
        roll=roll,
        owners=_owners(session, path, roll.entries, timeout),
        names=_names(session, path, roll.entries[:1], timeout),
        term=None if term is None else decode_term(term),
        size=_HEAD + sum(4 + len(child.encode()) for child in children),
    )


def _owners(
    session: Session, path: str, entries: tuple[Entry, ...], timeout: float
) -> Mapping[Entry, int]:
    """Return who owns those still there; all questions go out before the first answer."""
    if not entries:
        return {}

    def send(gateway: Any, done: Any) -> None:
        answers: list[Any] = []
        for entry in entries:
            gateway.details(f"{path}/{entry.node}", answers.append)
        # Lost with the link, it is asked again; answered, so are all before it.
        gateway.details(path, lambda last: done(last if isinstance(last, Failure) else answers))

    answers = value_of(session, path, "look at", ask(session, send, timeout))
    pairs = zip(entries, answers, strict=True)
    return {entry: found.owner for entry, found in pairs if not _is_missing(found)}


def _names(
    session: Session, path: str, entries: tuple[Entry, ...], timeout: float
) -> Mapping[Entry, str]:
    names = {entry: _read(session, f"{path}/{entry.node}", timeout) for entry in entries}
    return {
        entry: name.decode("utf-8", "backslashreplace")
        for entry, name in names.items()
        if name is not None
    }


def _read(session: Session, path: str, timeout: float) -> bytes | None:
    answer: Any = ask(session, lambda g, done: g.get(path, done), timeout)
    if _is_missing(answer):
        return None
    data: bytes = value_of(session, path, "read", answer)[0]
    return data


def _is_missing(answer: Any) -> bool:
    return answer is None or (isinstance(answer, Failure) and answer.fault is Fault.NO_NODE)


def read_election(
    session: Session, path: str, timeout: float, before: Look | None = None
) -> Election:
    """Return all that is to be known of an election.

    :param before: an earlier look at it.
    """
    denied: list[tuple[str, str]] = []

    def attempt(read: Callable[[], _Value]) -> _Value | None:
        try:
            return read()
        except PermissionDenied as error:
            denied.append((error.path, error.permission))
        return None

    record = attempt(lambda: _read(session, record_path(path), timeout))
    decoded = None if record is None else decode_record(record, 0)
    recorded = read_details(session, record_path(path), timeout) is not None
    details = read_details(session, path, timeout)
    return Election(
        path=path,
        exists=details is not None,
        recorded=recorded,
        damaged=record is not None and decoded is None,
        pause=None if decoded is None else decoded.paused,
        next_sequence=None if details is None else details.next_sequence,
        acls=_acls(session, path, timeout),
        sizes=_sizes(session, path, timeout),
        before=before,
        now=attempt(lambda: _look(session, path, timeout)),
        denied=tuple(dict.fromkeys(denied)),
    )


def _pages(path: str) -> tuple[str, ...]:
    return (record_path(path), term_path(path), history_path(path))


def _sizes(session: Session, path: str, timeout: float) -> Mapping[str, int]:
    found = {page: read_details(session, page, timeout) for page in _pages(path)}
    return {page: details.size for page, details in found.items() if details is not None}


def _acls(session: Session, path: str, timeout: float) -> Mapping[str, tuple[str, ...]]:
    """Return the ACLs that there are and that we may read."""
    acls = {}
    for each in (path, *_pages(path)):
        try:
            acls[each] = read_acl(session, each, timeout)
        except (PermissionDenied, RequestFailed):
            continue
    return acls
