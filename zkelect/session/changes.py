"""What there is now, and at every change: the blocking face of whatever is watched."""

from __future__ import annotations

from types import TracebackType
from typing import Generic, Self, TypeVar

from zkelect.errors import ConnectFailed
from zkelect.session.limits import check_timeout
from zkelect.session.lookout import Lookout

__all__ = ["Changes"]

T = TypeVar("T")


class Changes(Generic[T]):
    """A stream of what a lookout sees: who reads it too late is told the last of it only.

    :param timeout: seconds to wait for the first answer; None: it is not waited for.
    """

    def __init__(self, lookout: Lookout[T], timeout: float | None) -> None:
        check_timeout(timeout)
        self._session = lookout.session
        self._lookout = lookout
        self._timeout = timeout

    def __enter__(self) -> Self:
        """Begin, and wait for the first answer, unless no timeout says how long.

        :raises PermissionDenied: an ACL is against it. :raises ConnectFailed: no answer came.
        """
        self._session.ensure_usable()
        self._lookout.__enter__()
        try:
            if self._timeout is not None:
                self._begin(self._timeout)
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
        """Look no more."""
        self.close()

    def __iter__(self) -> Self:
        """Return itself: there is one stream."""
        return self

    def __next__(self) -> T | None:
        """Wait for a change and return what there is now, None when there is none.

        :raises StopIteration: the block was left. :raises SessionClosed: the session was.
        """
        self.wait()
        if self._lookout.closed:
            raise StopIteration
        return self._lookout.take()

    @property
    def fresh(self) -> bool:
        """Whether a change would be told at once: False while the link is down."""
        return self._lookout.fresh

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is something to tell, or the block is left.

        :param timeout: at most so many seconds; None: as long as it takes.
        :returns: whether there is a change that was not told yet.
        :raises PermissionDenied: an ACL is against it by now.
        :raises SessionClosed: there will be no change any more.
        """
        check_timeout(timeout)
        if self._lookout.closed:
            return False
        self._session.ensure_usable()
        with self._session.changed:
            self._session.changed.wait_for(self._news, timeout)
            if self._lookout.closed:
                return False
            self._check()
            return self._lookout.news

    def close(self) -> None:
        """Look no more: a loop in another thread ends."""
        self._lookout.__exit__()
        if self._session.foreign:
            return
        with self._session.changed:
            self._session.changed.notify_all()

    # --- within ----------------------------------------------------------------------------

    def _begin(self, timeout: float) -> None:
        with self._session.changed:
            self._session.changed.wait_for(self._news, timeout)
            self._check()
            if not self._lookout.known:
                raise ConnectFailed(self._session.hosts, timeout, {})

    def _news(self) -> bool:
        lookout = self._lookout
        ended = lookout.closed or self._session.ended
        return ended or lookout.error is not None or lookout.news

    def _check(self) -> None:
        self._session.ensure_usable()
        if self._lookout.error is not None:
            raise self._lookout.error
