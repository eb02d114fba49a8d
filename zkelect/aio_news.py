"""The bridge from the session's threads to one event loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

import attrs

from zkelect.aio_leadership import AsyncLeadership
from zkelect.errors import Misuse
from zkelect.session.functions import check_callable
from zkelect.session.leadership import Leadership
from zkelect.session.session import Session

__all__ = ["Deadline", "News"]

_log: Final = logging.getLogger("zkelect")


@attrs.frozen(kw_only=True)
class Deadline:
    """A time that is awaited for no longer.

    :param timeout: as it was said, seconds; None: for ever. :param at: the loop's time then.
    """

    timeout: float | None
    at: float | None

    @classmethod
    def after(cls, timeout: float | None) -> Self:
        """Return the deadline so many seconds from now."""
        now = asyncio.get_running_loop().time()
        return cls(timeout=timeout, at=None if timeout is None else now + timeout)

    async def met(self, wish: Awaitable[Any]) -> bool:
        """Await something of our own, which raises no TimeoutError; False: it came too late."""
        try:
            async with asyncio.timeout_at(self.at):
                await wish
        except TimeoutError:
            return False
        return True


class News:
    """Hears of a candidate under the session's lock, and wakes its coroutines.

    An :class:`zkelect.session.callbacks.Attendant`.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = asyncio.Event()
        self._leadership: AsyncLeadership | None = None

    def begin(self) -> bool:
        """Belong to the running loop from now on; True: the one before was closed.

        :raises Misuse: it belongs to another one that still runs.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop is not loop and self._loop.is_running():
            raise Misuse("this AsyncElection is used by another event loop; make one for each")
        orphaned = self._loop is not None and self._loop.is_closed()
        if self._loop is not loop:
            self._loop, self._told = loop, asyncio.Event()
        return orphaned

    def lead(self, leadership: Leadership) -> AsyncLeadership:
        """Return this leadership for coroutines; it is told when it is over."""
        self._leadership = AsyncLeadership(leadership)
        return self._leadership

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds; asked at every news, under the session's lock."""
        while True:
            self._told.clear()
            with self._session.lock:
                if condition():
                    return
            await self._told.wait()

    def blocking(self, question: Callable[[], Any]) -> Callable[[], bool]:
        """Return it as a function for a thread; a coroutine function runs in the loop."""
        check_callable("healthy", question, "a function that returns whether we are well")

        async def ask() -> bool:
            answer = question()
            return bool(await answer if inspect.isawaitable(answer) else answer)

        def call() -> bool:
            loop = self._loop
            if loop is None or loop.is_closed():
                return False  # nobody is left who could be healthy
            return asyncio.run_coroutine_threadsafe(ask(), loop).result()

        return call

    # --- attendant: under the session's lock -------------------------------------------------

    def granted(self, leadership: Leadership) -> None:
        """Wake who waits for it."""
        self.wake()

    def voided(self, leadership: Leadership) -> None:
        """Wake the body, and who cancels it."""
        mine = self._leadership
        self.wake()
        if mine is not None and mine.leadership is leadership:
            self._call(mine.tell_over)

    def failed(self, error: BaseException) -> None:
        """Wake who waits: the error is theirs."""
        self.wake()

    def finished(self) -> None:
        """Wake who waits for the znode to go."""
        self.wake()

    def closed(self) -> None:
        """Wake everybody: the session is being closed."""
        self.wake()

    def wake(self) -> None:
        """Let who waits look again."""
        self._call(self._told.set)

    def _call(self, call: Callable[[], None]) -> None:
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop was closed: with it, all that could be told
            _log.debug("news came after the event loop was closed")
