"""The page of an election's switchovers, as an operator reads and writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zkelect.core.handover import decode_handover, encode_handover, handover_path
from zkelect.errors import NobodyLeads, PermissionDenied, RequestFailed
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault, Operation, Put

if TYPE_CHECKING:
    from zkelect.core.handover import Handover
    from zkelect.session.session import Session

__all__ = ["read_handover", "write_handover"]


def read_handover(session: Session, path: str, timeout: float) -> tuple[Handover | None, int]:
    """Return the latest switchover, None before the first, and the page's version.

    A page that is missing is made.
    """
    page = handover_path(path)
    answer = ask(session, lambda g, done: g.get(page, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        made = ask(session, lambda g, done: g.create(page, b"{}", done), timeout)
        if not (isinstance(made, Failure) and made.fault is Fault.NODE_EXISTS):
            _value(session, page, "create", made)
        return read_handover(session, path, timeout)
    data, stat = _value(session, page, "read", answer)
    return decode_handover(data, stat.version), stat.version


def write_handover(session: Session, path: str, handover: Handover, timeout: float) -> bool:
    """Write at the version it has, and wake its leader and heir, in one commit.

    They watch the leader's znode anyway: to write its data again tells both, without a watch
    or a request of theirs before.

    :returns: False when the page has another version by now, or the leader has gone.
    :raises NobodyLeads: it has gone before, so that nobody can drive the switchover.
    """
    operations: list[Operation] = [
        Put(path=handover_path(path), data=encode_handover(handover), version=handover.version)
    ]
    wake = _wake(session, f"{path}/{handover.leader}", timeout)
    if wake is not None:
        operations.append(wake)
    elif handover.pending:
        raise NobodyLeads(path)
    answer = ask(session, lambda g, done: g.multi(operations, done), timeout)
    items = [answer] if isinstance(answer, Failure) else answer
    for operation, item in zip(operations, items, strict=False):
        if isinstance(item, Failure) and item.fault in (Fault.BAD_VERSION, Fault.NO_NODE):
            return False
        if not (isinstance(item, Failure) and item.fault is Fault.ROLLED_BACK):
            _value(session, operation.path, "write", item)
    return True


def _wake(session: Session, node: str, timeout: float) -> Put | None:
    answer = ask(session, lambda g, done: g.get(node, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        return None
    return Put(path=node, data=_value(session, node, "read", answer)[0])


def _value(session: Session, path: str, request: str, answer: Any) -> Any:
    if not isinstance(answer, Failure):
        return answer
    if answer.fault is Fault.DENIED:
        raise PermissionDenied(path, request, session.schemes) from answer.cause
    raise RequestFailed(path, request, str(answer)) from answer.cause
