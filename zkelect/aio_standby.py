"""The body that runs while a candidate waits, for coroutines: a task that is cancelled in time."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from zkelect.aio_body import awaited
from zkelect.aio_leadership import AsyncLeadership
from zkelect.aio_news import News
from zkelect.aio_observer import AsyncObservation
from zkelect.errors import SessionClosed
from zkelect.session.roll import Candidate
from zkelect.session.standby import Over, Standby

if TYPE_CHECKING:
    from zkelect.session.candidacy import Candidacy

__all__ = ["AsyncStandby", "Following"]

Following = Callable[[AsyncObservation], Awaitable[object]]
"""What a user gives as ``standby``: a coroutine function of who leads."""

_ON_ITS_WAY: Final = 1.0
"""Seconds: the cancellation was decided upon together with the close."""


class AsyncStandby:
    """Lets a coroutine function run, as a task, whenever a candidate waits behind somebody.

    A :class:`zkelect.session.standby.Body`; it is started and stopped by the session's
    threads, and runs in the event loop, with the context variables of who campaigns.
    """

    def __init__(self, candidacy: Candidacy, news: News, function: Following) -> None:
        self._candidacy = candidacy
        self._news = news
        self._function = function
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._standby = candidacy.standby = Standby(candidacy, self)

    # --- in the event loop -------------------------------------------------------------------

    def begin(self) -> None:
        """Belong to the running loop and to its present task, from now on."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop and self._standby.running:
            self._candidacy.session.deliver(self._standby.forget)  # it ended with its loop
        self._loop, self._context = loop, contextvars.copy_context()

    async def settle(self, leadership: AsyncLeadership) -> bool:
        """Wait for the end of the body before a leader prepares; False: it came too late."""
        await self._news.wait_for(
            lambda: not self._standby.running or leadership.reason is not None
        )
        with self._candidacy.session.lock:
            return self._standby.settled(leadership.leadership)

    async def end(self) -> None:
        """Wait until no body runs; who cancels us meanwhile waits for it, too."""
        cancelled: asyncio.CancelledError | None = None
        while self._standby.running:
            try:
                await self._news.wait_for(lambda: not self._standby.running)
            except asyncio.CancelledError as error:
                cancelled = error
                self._cancel()
        if cancelled is not None:
            raise cancelled

    async def _run(self) -> None:
        candidacy, function = self._candidacy, self._function
        async with _Leaders(candidacy.session, candidacy.path, candidacy.dialect, None) as leaders:
            await awaited("standby", function, function(leaders))

    def _launch(self, over: Over) -> None:
        def done(task: asyncio.Task[None]) -> None:
            self._candidacy.session.deliver(over, self._raised(task))
            self._news.wake()

        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(), context=self._context)
        self._task.add_done_callback(done)
        if self._stopped:
            self._task.cancel()

    def _raised(self, task: asyncio.Task[None]) -> BaseException | None:
        if task.cancelled():  # by itself: that is told, as of a leader's body
            return None if self._stopped else asyncio.CancelledError("standby")
        return task.exception()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # --- body: on any thread, under the session's lock -----------------------------------------

    def start(self, over: Over) -> None:
        """Begin in the loop, as soon as it has time."""
        assert self._loop is not None  # whoever campaigns has begun
        self._task, self._stopped = None, False
        self._loop.call_soon_threadsafe(self._launch, over)

    def stop(self) -> None:
        """Cancel it."""
        assert self._loop is not None
        self._stopped = True
        with suppress(RuntimeError):  # the loop was closed, and the task with it
            self._loop.call_soon_threadsafe(self._cancel)


class _Leaders(AsyncObservation):
    """Of a body: who closes the session has it cancelled, and no error comes between."""

    async def __anext__(self) -> Candidate | None:
        try:
            return await super().__anext__()
        except SessionClosed:
            await asyncio.sleep(_ON_ITS_WAY)
            raise
