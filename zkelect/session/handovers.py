"""The page of an election's switchovers, as an operator reads and writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.core.handover import decode_handover, encode_handover, handover_path
from zkelect.errors import NobodyLeads
from zkelect.session.acts import commit_act
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault, Operation, Put
from zkelect.session.pages import commit, is_committed, read_page, value_of

if TYPE_CHECKING:
    from zkelect.core.acts import Act
    from zkelect.core.handover import Handover
    from zkelect.session.session import Session

__all__ = ["read_handover", "write_handover"]


def read_handover(session: Session, path: str, timeout: float) -> tuple[Handover | None, int]:
    """Return the latest switchover, None before the first, and the page's version.

    A page that is missing is made.
    """
    data, stat = read_page(session, handover_path(path), b"{}", timeout)
    return decode_handover(data, stat.version), stat.version


def write_handover(
    session: Session, path: str, handover: Handover, timeout: float, act: Act | None = None
) -> bool:
    """Write at the version it has, and wake its leader and heir, in one commit.

    They watch the leader's znode anyway: to write its data again tells both, without a watch
    or a request of theirs before.

    :param act: written into the history with it.
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
    if act is None:
        refused = commit(session, operations, timeout)
    else:
        refused = commit_act(session, path, operations, act, timeout)
    return is_committed(session, refused, Fault.BAD_VERSION, Fault.NO_NODE)


def _wake(session: Session, node: str, timeout: float) -> Put | None:
    answer = ask(session, lambda g, done: g.get(node, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        return None
    return Put(path=node, data=value_of(session, node, "read", answer)[0])
