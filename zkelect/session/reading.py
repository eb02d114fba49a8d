"""Plain znodes in a session: read, made, replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault, Put
from zkelect.session.pages import commit, is_committed, value_of

if TYPE_CHECKING:
    from zkelect.session.session import Session

__all__ = ["Znode", "ensure_znode", "list_children", "read_znode", "replace_znode"]


@attrs.frozen(kw_only=True)
class Znode:
    """A znode as it was read.

    :ivar version: how often its data were changed; what a guarded write names.
    """

    data: bytes
    version: int


def read_znode(session: Session, path: str, timeout: float) -> Znode | None:
    """Return the znode, None when there is none."""
    answer: Any = ask(session, lambda g, done: g.get(path, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        return None
    data, stat = value_of(session, path, "read", answer)
    return Znode(data=data, version=stat.version)


def list_children(session: Session, path: str, timeout: float) -> tuple[str, ...] | None:
    """Return the names of the children, sorted; None when there is no such znode."""
    answer: Any = ask(session, lambda g, done: g.children(path, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        return None
    return tuple(sorted(value_of(session, path, "read", answer)))


def ensure_znode(session: Session, path: str, timeout: float) -> None:
    """Make a persistent znode, and all above it, where missing."""
    answer: Any = ask(session, lambda g, done: g.ensure(path, done), timeout)
    value_of(session, path, "create", answer)


def replace_znode(session: Session, path: str, data: bytes, version: int, timeout: float) -> bool:
    """Set the data if the znode is at that version; False: it is not, or is not there.

    Sent again when the answer was lost; whether the first one was committed is then read: the
    next version, with these data, is ours, or nobody could tell the difference.
    """
    put = Put(path=path, data=data, version=version)
    refused = commit(session, (put,), timeout)
    if is_committed(session, refused, Fault.BAD_VERSION, Fault.NO_NODE):
        return True
    return read_znode(session, path, timeout) == Znode(data=data, version=version + 1)
