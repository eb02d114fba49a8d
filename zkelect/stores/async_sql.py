"""A guarded SQL database for asyncio, by SQLAlchemy 2's AsyncEngine."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, overload

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from zkelect.errors import InvalidArgument
from zkelect.stores.fence import Claimant, present
from zkelect.stores.sql_plan import Plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy import Transaction
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
    from sqlalchemy.orm import SessionTransaction

    from zkelect.stores.mark import Mark
    from zkelect.stores.sql_plan import Guarded

__all__ = ["AsyncSqlFence"]

S = TypeVar("S", "AsyncConnection", "AsyncSession")
T = TypeVar("T")


class AsyncSqlFence:
    """A database in which only the present leader writes: :class:`SqlFence` for asyncio.

    Promises what that one promises, since the same code runs, on PostgreSQL (psycopg,
    asyncpg), MariaDB (asyncmy, aiomysql) and SQLite (aiosqlite). A task that is cancelled
    inside the block, or while it waits for the guard, has written nothing, and its connection
    gives the database's locks back. One that is cancelled during the commit may have written.

    Does not promise: anything to two tasks that use one transaction at a time, as SQLAlchemy
    does not.

    :param engine: of the database; the fence takes connections from its pool.
    :param domain: which election guards it: 1 to 255 printable characters.
    :param timeout: seconds to wait for a lock, more than 0, or the lease left if that is less.
    :param schema: where the fence's table is; None for the one that connections begin in.
    :raises InvalidArgument: an argument is outside its range, or the database unknown here.
    """

    def __init__(
        self, engine: AsyncEngine, *, domain: str, timeout: float = 5.0, schema: str | None = None
    ) -> None:
        if not isinstance(engine, AsyncEngine):
            raise InvalidArgument("engine", engine, "an AsyncEngine; SqlFence takes the other")
        self._plan = Plan(engine.sync_engine, domain=domain, timeout=timeout, schema=schema)
        self._engine = engine

    async def claim(self, claimant: Claimant, *, initialize: bool = False) -> None:
        """Raise the mark to the claimant's token; see :meth:`SqlFence.claim`."""
        present(claimant)
        async with self._connected(claimant) as connection:
            await connection.run_sync(self._plan.claim, claimant, initialize=initialize)

    @overload
    def transaction(self, claimant: Claimant) -> AbstractAsyncContextManager[AsyncConnection]: ...

    @overload
    def transaction(self, claimant: Claimant, on: S) -> AbstractAsyncContextManager[S]: ...

    def transaction(self, claimant: Claimant, on: Any = None) -> AbstractAsyncContextManager[Any]:
        """Lend a guarded transaction; see :meth:`SqlFence.transaction`.

        :param on: an AsyncConnection or AsyncSession to use, which is in no transaction.
        """
        return self._transaction(claimant, on)

    @overload
    async def run(
        self,
        claimant: Claimant,
        work: Callable[[AsyncConnection], Awaitable[T]],
        *,
        attempts: int = 10,
    ) -> T: ...

    @overload
    async def run(
        self, claimant: Claimant, work: Callable[[S], Awaitable[T]], on: S, *, attempts: int = 10
    ) -> T: ...

    async def run(
        self,
        claimant: Claimant,
        work: Callable[[Any], Awaitable[T]],
        on: Any = None,
        *,
        attempts: int = 10,
    ) -> T:
        """Run the work in a guarded transaction, again after a conflict; see SqlFence.run."""
        for left in reversed(range(attempts)):
            try:
                async with self.transaction(claimant, on) as subject:
                    return await work(subject)
            except DBAPIError as error:
                if not left or not self._plan.errors.is_conflict(error):
                    raise
        raise InvalidArgument("attempts", attempts, "1 or more")

    async def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed; creates nothing."""
        async with self._connected() as connection:
            return await connection.run_sync(self._plan.status)

    @asynccontextmanager
    async def _connected(self, claimant: Claimant | None = None) -> AsyncIterator[AsyncConnection]:
        connection = self._engine.connect()
        with self._plan.errors.connecting(claimant):
            await connection.start()
        async with AsyncExitStack() as stack:
            stack.push_async_exit(connection)
            yield connection

    @asynccontextmanager
    async def _transaction(
        self, claimant: Claimant, on: AsyncConnection | AsyncSession | None
    ) -> AsyncIterator[AsyncConnection | AsyncSession]:
        present(claimant)
        if not self._plan.has_claimed(claimant):
            await self.claim(claimant)
        async with self._connected(claimant) if on is None else nullcontext(on) as subject:
            guarded = await subject.run_sync(self._plan.begin, claimant)
            async with _entered(subject, guarded):
                try:
                    with self._plan.body(guarded, claimant):
                        yield subject
                except BaseException:
                    await subject.run_sync(lambda _: self._plan.roll_back(guarded))
                    raise
                await subject.run_sync(lambda _: self._plan.commit(guarded, claimant))


@asynccontextmanager
async def _entered(
    subject: AsyncConnection | AsyncSession, guarded: Guarded
) -> AsyncIterator[None]:
    """Enter SQLAlchemy's transaction; to leave it may mean to wait for the server."""
    transaction = guarded.transaction
    transaction.__enter__()
    try:
        yield
    except BaseException as error:
        await subject.run_sync(_leave, transaction, error)
        raise
    await subject.run_sync(_leave, transaction, None)


def _leave(_: object, transaction: Transaction | SessionTransaction, error: Any) -> None:
    if error is None:
        transaction.__exit__(None, None, None)
    else:
        transaction.__exit__(type(error), error, error.__traceback__)
