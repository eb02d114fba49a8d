"""Plain znodes, read and followed: what a leader has written, for those who obey it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from zkelect.errors import ConnectFailed
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


class Following:
    """What a znode holds, now and at every change; from :meth:`Znodes.follow`.

    It may skip some, and never lies about their order. Use it in one thread; leave the block in
    any, and its loop ends.
    """

    def __init__(self, session: Session, path: str, timeout: float) -> None:
        self._session = session
        self._timeout = timeout
        self._follower = Follower(session, path, session.changed.notify_all)
        self._told: tuple[Znode | None] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        """Begin, and wait for the first answer.

        :raises PermissionDenied: the znode's ACL is against it.
        :raises ConnectFailed: no answer came.
        """
        self._session.ensure_usable()
        self._follower.__enter__()
        try:
            self._begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following."""
        self.close()

    def __iter__(self) -> Self:
        """Return itself: there is one stream."""
        return self

    def __next__(self) -> Znode | None:
        """Wait for a change and return what there is now, None when the znode is gone.

        :raises StopIteration: the block was left. :raises SessionClosed: the session was.
        """
        self.wait()
        if self._closed:
            raise StopIteration
        return self.znode

    @property
    def znode(self) -> Znode | None:
        """The znode, as far as it is known; what was returned here is not told again."""
        with self._session.lock:
            self._told = (self._follower.znode,)
            return self._follower.znode

    @property
    def fresh(self) -> bool:
        """Whether a change would be told at once: False while the link is down."""
        return self._follower.fresh

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is something to tell, or the block is left.

        :param timeout: at most so many seconds; None: as long as it takes.
        :returns: whether there is a change that was not told yet.
        :raises PermissionDenied: the znode's ACL is against it by now.
        :raises SessionClosed: there will be no change any more.
        """
        check_timeout(timeout)
        self._session.ensure_usable()
        with self._session.changed:
            self._session.changed.wait_for(self._news, timeout)
            if not self._closed:
                self._check()
            return not self._closed and self._is_new()

    def close(self) -> None:
        """Stop following: a loop in another thread ends."""
        self._follower.__exit__()
        if self._session.foreign:
            return
        with self._session.changed:
            self._closed = True
            self._session.changed.notify_all()

    # --- within ----------------------------------------------------------------------------

    def _begin(self) -> None:
        with self._session.changed:
            self._session.changed.wait_for(self._news, self._timeout)
            self._check()
            if not self._follower.known:
                raise ConnectFailed(self._session.hosts, self._timeout, {})

    def _news(self) -> bool:
        ended = self._closed or self._session.ended
        return ended or self._follower.error is not None or self._is_new()

    def _is_new(self) -> bool:
        return self._follower.known and self._told != (self._follower.znode,)

    def _check(self) -> None:
        self._session.ensure_usable()
        if self._follower.error is not None:
            raise self._follower.error
