"""Plain znodes, read and followed: what a leader has written, for those who obey it."""

from __future__ import annotations

from zkelect.session.changes import Changes
from zkelect.session.following import Follower
from zkelect.session.limits import check_timeout
from zkelect.session.reading import Znode, ensure_znode, list_children, read_znode, replace_znode
from zkelect.session.session import Session
from zkelect.stores.znode import valid_path

__all__ = ["Following", "Znode", "Znodes"]


class Znodes:
    """Reads in a session; a leader writes by :class:`zkelect.stores.ZnodeFence`.

    What a leader writes in its own session it reads back at once; another session's server may
    lag behind, and tells of changes in their order (Programmer's Guide, "Consistency
    Guarantees")::

        znodes = zkelect.Znodes(session)
        with znodes.follow("/config") as changes:
            for znode in changes:
                print("gone" if znode is None else znode.data)

    :param timeout: seconds to wait for an answer, each time.
    """

    def __init__(self, session: Session, *, timeout: float = 10.0) -> None:
        check_timeout(timeout, endless=False)
        self._session = session
        self._timeout = timeout

    def get(self, path: str) -> Znode | None:
        """Return data and version of a znode; None: there is none.

        :raises PermissionDenied: its ACL is against it. :raises ConnectFailed: no answer came.
        """
        return read_znode(self._session, valid_path(path), self._timeout)

    def children(self, path: str) -> tuple[str, ...] | None:
        """Return the names of the children, sorted; None: there is no such znode.

        :raises PermissionDenied: its ACL is against it. :raises ConnectFailed: no answer came.
        """
        return list_children(self._session, valid_path(path), self._timeout)

    def ensure(self, path: str) -> None:
        """Make a persistent znode without data, and all above it, where missing.

        :raises PermissionDenied: an ACL is against it. :raises ConnectFailed: no answer came.
        """
        ensure_znode(self._session, valid_path(path), self._timeout)

    def replace(self, path: str, data: bytes, *, version: int) -> bool:
        """Set the data of a znode that is still as it was read, whoever leads by now.

        :param version: as it was read. :returns: False: it has been changed, or is gone.
        :raises PermissionDenied: its ACL is against it. :raises ConnectFailed: no answer came.
        """
        return replace_znode(self._session, valid_path(path), data, version, self._timeout)

    def follow(self, path: str) -> Following:
        """Follow one znode: what it holds, at every change, its creation and its end."""
        return Following(self._session, valid_path(path), self._timeout)


class Following(Changes[Znode]):
    """What a znode holds, now and at every change; from :meth:`Znodes.follow`.

    It may skip some, and never lies about their order. Use it in one thread; leave the block in
    any, and its loop ends.
    """

    def __init__(self, session: Session, path: str, timeout: float) -> None:
        self._follower = Follower(session, path, session.changed.notify_all)
        super().__init__(self._follower, timeout)

    @property
    def znode(self) -> Znode | None:
        """The znode, as far as it is known; what was returned here is not told again."""
        return self._follower.take()
