"""The fence for asyncio behind a plain one, so that the contract can be put to it.

Its coroutines run on a thread of their own, in one event loop.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy.ext.asyncio import create_async_engine
from stores.benches import token_of
from stores.sql_bench import SqlBench

from zkelect.stores.async_sql import AsyncSqlFence

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from sqlalchemy import CursorResult, Engine, TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection

    from zkelect.stores import Mark
    from zkelect.stores.fence import Claimant

__all__ = ["AsyncSqlBench", "EventLoop", "PlainFence"]

T = TypeVar("T")


class EventLoop:
    """An event loop on a thread of its own, and an engine that lives in it."""

    def __init__(self, url: str, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="event-loop")
        self._thread.start()
        self.engine = create_async_engine(url, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.engine.dispose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it in the loop and wait for what it gives."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class _PlainConnection:
    """What the bench uses of a connection."""

    def __init__(self, loop: EventLoop, connection: AsyncConnection) -> None:
        self._loop, self._connection = loop, connection

    def execute(self, statement: TextClause, parameters: dict[str, Any]) -> CursorResult[Any]:
        return self._loop.run(self._connection.execute(statement, parameters))


class PlainFence:
    """The fence, called from any thread but the loop's."""

    def __init__(self, loop: EventLoop, *, domain: str, timeout: float) -> None:
        self._loop = loop
        self._fence = AsyncSqlFence(loop.engine, domain=domain, timeout=timeout)

    def claim(self, claimant: Claimant) -> None:
        self._loop.run(self._fence.claim(claimant))

    def status(self) -> Mark | None:
        return self._loop.run(self._fence.status())

    @contextmanager
    def transaction(self, claimant: Claimant) -> Iterator[_PlainConnection]:
        entered = self._fence.transaction(claimant)
        connection = self._loop.run(_enter(entered))
        try:
            yield _PlainConnection(self._loop, connection)
        except BaseException as error:
            self._loop.run(_leave(entered, error))
            raise
        else:
            self._loop.run(_leave(entered, None))


async def _enter(entered: AbstractAsyncContextManager[AsyncConnection]) -> AsyncConnection:
    return await entered.__aenter__()


async def _leave(entered: AbstractAsyncContextManager[Any], error: BaseException | None) -> None:
    if error is None:
        await entered.__aexit__(None, None, None)
    else:
        await entered.__aexit__(type(error), error, error.__traceback__)


class AsyncSqlBench(SqlBench):
    """The bench of the SQL fence, with fences for asyncio."""

    def __init__(self, engine: Engine, loop: EventLoop) -> None:
        super().__init__(engine)
        self._loop = loop

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> Any:
        return PlainFence(self._loop, domain=domain, timeout=timeout)

    def transaction(self, fence: Any, claimant: Claimant) -> AbstractContextManager[Any]:
        plain: PlainFence = fence
        return plain.transaction(claimant)

    def write(self, fence: Any, claimant: Claimant, entry: str) -> None:
        with self.transaction(fence, claimant) as transaction:
            self.append(transaction, token_of(claimant), entry)
