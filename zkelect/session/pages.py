"""Pages beside an election, as an operator reads and writes them: asked, answered, judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zkelect.errors import PermissionDenied, RequestFailed
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault, Operation, Stat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.errors import ZkelectError
    from zkelect.session.session import Session

__all__ = ["Refusal", "commit", "error_of", "is_committed", "read_page", "value_of"]

Refusal = tuple[Operation, Failure]
"""The operation for whose sake a transaction was refused, and how it failed."""


def read_page(session: Session, path: str, empty: bytes, timeout: float) -> tuple[bytes, Stat]:
    """Read a page; one that is missing is made.

    :param empty: what a new one says.
    """
    answer = ask(session, lambda g, done: g.get(path, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        made = ask(session, lambda g, done: g.create(path, empty, done), timeout)
        if not (isinstance(made, Failure) and made.fault is Fault.NODE_EXISTS):
            value_of(session, path, "create", made)
        return read_page(session, path, empty, timeout)
    page: tuple[bytes, Stat] = value_of(session, path, "read", answer)
    return page


def commit(session: Session, operations: Sequence[Operation], timeout: float) -> Refusal | None:
    """Commit all or nothing; sent again when the answer was lost.

    So if the first of them checks a version that it changes, that one fails then.

    :returns: None when it is committed.
    """
    answer = ask(session, lambda g, done: g.multi(operations, done), timeout)
    items = (answer,) if isinstance(answer, Failure) else answer
    failed = [pair for pair in zip(operations, items, strict=False) if isinstance(pair[1], Failure)]
    culprits = (pair for pair in failed if pair[1].fault is not Fault.ROLLED_BACK)
    return next(culprits, next(iter(failed), None))


def is_committed(
    session: Session, refused: Refusal | None, *stale: Fault, request: str = "write"
) -> bool:
    """Whether it is; False when it was refused for one of these faults, so read again.

    :raises PermissionDenied, RequestFailed: it was refused for another reason.
    """
    if refused is None:
        return True
    operation, failure = refused
    if failure.fault not in stale:
        value_of(session, operation.path, request, failure)
    return False


def value_of(session: Session, path: str, request: str, answer: Any) -> Any:
    """Return the answer, or raise what it tells of.

    :raises PermissionDenied, RequestFailed: it is a failure.
    """
    if not isinstance(answer, Failure):
        return answer
    raise error_of(session, path, request, answer)


def error_of(session: Session, path: str, request: str, failure: Failure) -> ZkelectError:
    """Return the error that a failure is to users, with kazoo's as its cause."""
    error = (
        PermissionDenied(path, request, session.schemes)
        if failure.fault is Fault.DENIED
        else RequestFailed(path, request, str(failure))
    )
    error.__cause__ = failure.cause
    return error
