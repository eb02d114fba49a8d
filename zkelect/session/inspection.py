"""What a znode's stat and ACL tell, for an operator who looks: nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zkelect.session.asking import ask
from zkelect.session.pages import value_of

if TYPE_CHECKING:
    from zkelect.session.details import Details
    from zkelect.session.session import Session

__all__ = ["read_acl", "read_details"]


def read_details(session: Session, path: str, timeout: float) -> Details | None:
    """Return what the stat of a znode tells, None where there is none; takes no permission.

    :param timeout: seconds to wait for the answer.
    """
    answer: Any = ask(session, lambda g, done: g.details(path, done), timeout)
    found: Details | None = value_of(session, path, "look at", answer)
    return found


def read_acl(session: Session, path: str, timeout: float) -> tuple[str, ...]:
    """Return a znode's ACL, each entry as zkCli writes it: ``world:anyone:cdrwa``.

    :raises PermissionDenied: it takes the permission to read, or to administer, the znode.
    :raises RequestFailed: there is none.
    """
    answer: Any = ask(session, lambda g, done: g.acl(path, done), timeout)
    entries: tuple[str, ...] = value_of(session, path, "read the ACL", answer)
    return entries
