"""The blocking face of an observer: a loop over who leads."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from zkelect.core.znodes import Dialect
from zkelect.errors import ConnectFailed
from zkelect.session.limits import check_timeout
from zkelect.session.observer import Observer
from zkelect.session.roll import Candidate
from zkelect.session.session import Session

__all__ = ["Observation"]


class Observation:
    """Who leads, now and at every change; from :meth:`zkelect.Election.observe`.

    Iterate in one thread; leave the block in any, and the loop ends.
    """

    def __init__(
        self, session: Session, path: str, dialect: Dialect, timeout: float | None
    ) -> None:
        check_timeout(timeout)
        self._session = session
        self._timeout = timeout
        self._observer = Observer(session, path, dialect, session.changed.notify_all)
        self._told: tuple[Candidate | None] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        """Begin, and wait for the first answer, unless no timeout says how long."""
        self._session.ensure_usable()
        self._observer.__enter__()
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
        """Stop observing."""
        self.close()

    def __iter__(self) -> Self:
        """Return itself: there is one stream."""
        return self

    def __next__(self) -> Candidate | None:
        """Wait for a change and return who leads now, None when nobody does.

        :raises StopIteration: the block was left. :raises SessionClosed: the session was.
        """
        self.wait()
        if self._closed:
            raise StopIteration
        return self.leader

    @property
    def leader(self) -> Candidate | None:
        """Who leads, as far as it is known; what was returned here is not told again."""
        with self._session.lock:
            self._told = (self._observer.leader,)
            return self._observer.leader

    @property
    def fresh(self) -> bool:
        """Whether a change would be told at once: False while the link is down."""
        return self._observer.fresh

    @property
    def age(self) -> float:
        """Seconds since that was known to be so; 0.0 while it is fresh."""
        with self._session.lock:
            if self._observer.fresh:
                return 0.0
            return max(self._session.now() - self._observer.told_at, 0.0)

    @property
    def closed(self) -> bool:
        """Whether the block was left; of a standby body, whether its wait is over."""
        return self._closed

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is something to tell, or the block is left.

        :param timeout: at most so many seconds; None: as long as it takes.
        :returns: whether there is a change that was not told yet.
        :raises SessionClosed: there will be none any more.
        """
        check_timeout(timeout)
        if self._closed:
            return False
        self._session.ensure_usable()
        with self._session.changed:
            self._session.changed.wait_for(self._news, timeout)
            if self._closed:
                return False
            self._check()
            return self._is_new()

    def close(self) -> None:
        """Stop observing: a loop in another thread ends."""
        self._observer.__exit__()
        if self._session.foreign:
            return
        with self._session.changed:
            self._closed = True
            self._session.changed.notify_all()

    # --- within ----------------------------------------------------------------------------

    def _begin(self, timeout: float) -> None:
        with self._session.changed:
            self._session.changed.wait_for(self._news, timeout)
            self._check()
            if not self._observer.known:
                raise ConnectFailed(self._session.hosts, timeout, {})

    def _news(self) -> bool:
        ended = self._closed or self._session.ended
        return ended or self._observer.error is not None or self._is_new()

    def _is_new(self) -> bool:
        return self._observer.known and self._told != (self._observer.leader,)

    def _check(self) -> None:
        self._session.ensure_usable()
        if self._observer.error is not None:
            raise self._observer.error
