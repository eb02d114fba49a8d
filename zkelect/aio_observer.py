"""Who leads, for coroutines: at every change, with freshness."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from zkelect.core.znodes import Dialect
from zkelect.errors import ConnectFailed
from zkelect.session.limits import check_timeout
from zkelect.session.observer import Observer
from zkelect.session.roll import Candidate
from zkelect.session.session import Session

__all__ = ["AsyncObservation"]


class AsyncObservation:
    """Who leads, now and at every change; from :meth:`zkelect.AsyncElection.observe`."""

    def __init__(
        self, session: Session, path: str, dialect: Dialect, timeout: float | None
    ) -> None:
        check_timeout(timeout)
        self._session = session
        self._timeout = timeout
        self._observer = Observer(session, path, dialect, self._hear)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._told: tuple[Candidate | None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        """Begin, and wait for the first answer, unless no timeout says how long."""
        self._session.ensure_usable()
        self._loop = asyncio.get_running_loop()
        self._observer.__enter__()
        try:
            if self._timeout is not None:
                await self._begin(self._timeout)
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop observing."""
        self.close()

    def __aiter__(self) -> Self:
        """Return itself: there is one stream."""
        return self

    async def __anext__(self) -> Candidate | None:
        """Wait for a change and return who leads now, None when nobody does.

        :raises StopAsyncIteration: the block was left. :raises SessionClosed: the session was.
        """
        while not self._closed:
            self._changed.clear()
            self._check()
            if self._observer.known and self._told != (self._observer.leader,):
                return self.leader
            await self._changed.wait()
        raise StopAsyncIteration

    @property
    def leader(self) -> Candidate | None:
        """Who leads, as far as it is known; what was returned here is not told again."""
        leader = self._observer.leader
        self._told = (leader,)
        return leader

    @property
    def fresh(self) -> bool:
        """Whether a change would be told at once: False while the link is down."""
        return self._observer.fresh

    def close(self) -> None:
        """Stop observing: a loop in another task ends."""
        self._observer.__exit__()
        self._closed = True
        self._changed.set()

    # --- within ----------------------------------------------------------------------------

    async def _begin(self, timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._observer.known and self._observer.error is None:
                    self._changed.clear()
                    self._check()
                    if not self._observer.known:
                        await self._changed.wait()
        self._check()
        if not self._observer.known:
            raise ConnectFailed(self._session.hosts, timeout, {})

    def _check(self) -> None:
        self._session.ensure_usable()
        if self._observer.error is not None:
            raise self._observer.error

    def _hear(self) -> None:
        """On the session's thread, under its lock."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop was closed: nobody iterates any more
                self._loop.call_soon_threadsafe(self._changed.set)
