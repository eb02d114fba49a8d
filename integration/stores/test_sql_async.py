"""What the fence for asyncio adds: tasks that are cancelled, and many of them at a time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import pytest
import sqlalchemy as sa
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from stores.sql_bench import SqlBench, engine_of

from zkelect.errors import (
    Fenced,
    InvalidArgument,
    LeadershipLost,
    Misuse,
    RequestFailed,
    UnfitStore,
)
from zkelect.stores.async_sql import AsyncSqlFence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from servers.mariadb import MariaDb
    from stores.bearers import FakeBearer

    from zkelect.token import Token

    MakeBearer = Callable[..., FakeBearer]

PLAIN_DRIVERS = {"postgresql": "psycopg", "mariadb": "pymysql"}
KILL = {
    "postgresql": "select pg_terminate_backend({pid})",
    "mariadb": "kill {pid}",
}
WHO = {"postgresql": "select pg_backend_pid()", "mariadb": "select connection_id()"}
CHANGE = "update log set entry = concat(entry, '!') where position = {}"
WRITERS = 8


class Site:
    """One new database, and how to reach it."""

    def __init__(self, server: Any, kind: str, driver: str) -> None:
        database = server.create_database()
        self.server, self.kind = server, kind
        self.url = server.url(driver, database=database)
        self.plain_url = server.url(PLAIN_DRIVERS[kind], database=database)

    def __enter__(self) -> Self:
        self._engine = engine_of(self.plain_url)
        self._bench = SqlBench(self._engine.__enter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.__exit__(None, None, None)

    @asynccontextmanager
    async def engine(self, **options: Any) -> AsyncIterator[AsyncEngine]:
        """Lend an engine; all its connections must be back at the end."""
        engine = create_async_engine(self.url, pool_size=WRITERS, **options)
        pool = engine.pool
        assert isinstance(pool, sa.AsyncAdaptedQueuePool)
        try:
            yield engine
            assert pool.checkedout() == 0
        finally:
            await engine.dispose()

    def entries(self) -> list[str]:
        return [entry for _, entry in self._bench.log()]

    async def wait_for_a_waiter(self) -> None:
        async with asyncio.timeout(60):
            while not self.server.count_waiting():
                await asyncio.sleep(0.02)

    async def append(self, on: AsyncConnection | AsyncSession, token: Token, entry: str) -> None:
        values = {"token": str(token), "entry": entry}
        await on.execute(text("insert into log (token, entry) values (:token, :entry)"), values)


@pytest.fixture(
    params=[
        ("postgresql", "asyncpg"),
        ("postgresql", "psycopg"),
        ("mariadb", "asyncmy"),
        ("mariadb", "aiomysql"),
    ],
    ids="-".join,
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    kind, driver = request.param
    with Site(request.getfixturevalue(kind), kind, driver) as site:
        yield site


# --- tasks that are cancelled ------------------------------------------------------------------


def test_who_is_cancelled_inside_the_block_has_written_nothing(
    site: Site, bearer: MakeBearer
) -> None:
    old, new = bearer(5), bearer(6)

    async def story() -> None:
        async with site.engine() as engine:
            fence, inside = AsyncSqlFence(engine, domain="d", timeout=60.0), asyncio.Event()
            await fence.claim(old)

            async def write_and_wait() -> None:
                async with fence.transaction(old) as connection:
                    await site.append(connection, old.token, "cancelled")
                    inside.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(write_and_wait())
            await inside.wait()
            await _cancel(task)
            await fence.claim(new)  # nothing is in its way

    asyncio.run(story())
    assert site.entries() == []


def test_who_is_cancelled_inside_a_statement_has_written_nothing(
    site: Site, bearer: MakeBearer
) -> None:
    leader = bearer(5)

    async def story() -> None:
        async with site.engine() as engine, engine.connect() as other:
            fence = AsyncSqlFence(engine, domain="d", timeout=60.0)
            await fence.claim(leader)
            await fence.run(leader, lambda on: site.append(on, leader.token, "first"))
            await other.execute(text("select * from log for update"))

            async def wait_for_the_row() -> None:
                async with fence.transaction(leader) as connection:
                    await site.append(connection, leader.token, "cancelled")
                    await connection.execute(text("select * from log for update"))

            task = asyncio.create_task(wait_for_the_row())
            await site.wait_for_a_waiter()
            await _cancel(task)
            await other.rollback()
            await fence.run(leader, lambda on: site.append(on, leader.token, "next"))

    asyncio.run(story())
    assert site.entries() == ["first", "next"]


def test_a_claim_that_is_cancelled_while_it_waits_changes_nothing(
    site: Site, bearer: MakeBearer
) -> None:
    old, new, newest = bearer(5), bearer(6), bearer(7)

    async def story() -> None:
        async with site.engine() as engine:
            fence = AsyncSqlFence(engine, domain="d", timeout=60.0)
            await fence.claim(old)
            async with fence.transaction(old) as connection:
                await site.append(connection, old.token, "undisturbed")
                task = asyncio.create_task(fence.claim(new))
                await site.wait_for_a_waiter()
                await _cancel(task)
            mark = await fence.status()
            assert mark is not None
            assert mark.token == old.token
            await fence.claim(newest)

    asyncio.run(story())
    assert site.entries() == ["undisturbed"]


def test_who_is_cancelled_during_the_commit_has_written_all_or_nothing(
    site: Site, bearer: MakeBearer
) -> None:
    old, new = bearer(5), bearer(6)

    async def story() -> None:
        async with site.engine() as engine:
            fence = AsyncSqlFence(engine, domain="d", timeout=60.0)
            await fence.claim(old)

            async def write() -> None:
                async with fence.transaction(old) as connection:
                    for entry in ("one", "two"):
                        await site.append(connection, old.token, entry)
                    event.listen(engine.sync_engine, "commit", lambda _: task.cancel(), once=True)

            task = asyncio.create_task(write())
            await asyncio.wait([task])
            assert task.cancelled()
            await fence.claim(new)

    asyncio.run(story())
    assert site.entries() in ([], ["one", "two"])


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


# --- many at a time -----------------------------------------------------------------------------


def test_eight_writers_of_one_leader_are_inside_together_until_a_successor_claims(
    site: Site, bearer: MakeBearer
) -> None:
    old, new = bearer(5), bearer(6)

    async def story() -> None:
        async with site.engine() as engine:
            fence = AsyncSqlFence(engine, domain="d", timeout=60.0)
            await fence.claim(old)
            together = asyncio.Barrier(WRITERS)

            async def write(entry: str) -> None:
                async with fence.transaction(old) as connection:
                    await together.wait()
                    await site.append(connection, old.token, entry)

            async def write_on() -> None:
                while True:
                    async with fence.transaction(old) as connection:
                        await site.append(connection, old.token, "more")

            await asyncio.gather(*(write("together") for _ in range(WRITERS)))
            writers = [asyncio.create_task(write_on()) for _ in range(WRITERS)]
            async with site.engine() as elsewhere:
                await AsyncSqlFence(elsewhere, domain="d", timeout=60.0).claim(new)
            ends = await asyncio.gather(*writers, return_exceptions=True)
            # The first that is refused ends the leadership for the others.
            assert {type(end) for end in ends} <= {Fenced, LeadershipLost}
            before = len(site.entries())
            await fence.run(new, lambda on: site.append(on, new.token, "new"))
            assert site.entries()[before:] == ["new"]

    asyncio.run(story())
    assert site.entries()[:WRITERS] == ["together"] * WRITERS


# --- sessions, conflicts, lost connections -------------------------------------------------------


def test_a_session_of_the_users_is_guarded(site: Site, bearer: MakeBearer) -> None:
    leader = bearer(5)

    async def story() -> None:
        async with site.engine() as engine, AsyncSession(engine) as session:
            fence = AsyncSqlFence(engine, domain="d")
            await fence.claim(leader)
            async with fence.transaction(leader, session) as lent:
                assert lent is session
                await site.append(session, leader.token, "by a session")
            await session.execute(text("select 1"))
            with pytest.raises(Misuse, match="in a transaction already"):
                await fence.run(leader, _nothing, session)

    asyncio.run(story())
    assert site.entries() == ["by a session"]


async def _nothing(_: object) -> None:
    raise AssertionError("the guard stands before this")


def test_a_conflict_is_run_again_as_a_whole(bearer: MakeBearer, postgresql: Any) -> None:
    leader = bearer(5)
    rounds: list[str] = []

    async def story(site: Site) -> None:
        async with site.engine(isolation_level="REPEATABLE READ") as engine:
            fence = AsyncSqlFence(engine, domain="d")
            await fence.claim(leader)
            await fence.run(leader, lambda on: site.append(on, leader.token, "first"))

            async def work(connection: AsyncConnection) -> None:
                rounds.append(f"round {len(rounds)}")
                await connection.execute(text("select * from log"))
                if len(rounds) == 1:
                    async with engine.begin() as other:
                        await other.execute(text("update log set entry = 'changed'"))
                await connection.execute(text("update log set entry = :e"), {"e": rounds[-1]})

            with pytest.raises(DBAPIError) as caught:
                await fence.run(leader, work, attempts=1)
            assert any("run the whole" in note for note in caught.value.__notes__)
            rounds.clear()
            await fence.run(leader, work)

    with Site(postgresql, "postgresql", "asyncpg") as site:
        asyncio.run(story(site))
        assert site.entries() == ["round 1"]


@pytest.mark.parametrize("when", ["a statement", "commit"])
def test_a_connection_that_is_ended_inside_the_block_is_told(
    site: Site, bearer: MakeBearer, when: str
) -> None:
    leader = bearer(5)

    async def story() -> None:
        async with site.engine() as engine:
            fence = AsyncSqlFence(engine, domain="d")
            await fence.claim(leader)

            async def lose_the_connection() -> None:
                async with fence.transaction(leader) as connection:
                    await site.append(connection, leader.token, "lost")
                    pid = (await connection.execute(text(WHO[site.kind]))).scalar_one()
                    site.server.ask(KILL[site.kind].format(pid=pid))
                    if when == "a statement":
                        await site.append(connection, leader.token, "more")

            with pytest.raises(RequestFailed, match=when):
                await lose_the_connection()
            await fence.run(leader, lambda on: site.append(on, leader.token, "next"))

    asyncio.run(story())
    assert site.entries() == ["next"]


def test_h53_after_a_deadlock_on_mariadb_nothing_more_is_written(
    bearer: MakeBearer, mariadb: MariaDb
) -> None:
    leader = bearer(5)

    async def story(site: Site) -> None:
        async with site.engine() as engine, engine.connect() as other:
            fence = AsyncSqlFence(engine, domain="d")
            await fence.claim(leader)
            for entry in ("one", "two"):
                await site.append(other, leader.token, entry)
            await other.commit()
            # InnoDB rolls back the smaller of two transactions: that is ours.
            for _ in range(20):
                await site.append(other, leader.token, "much")
            await other.execute(text(CHANGE.format(1)))
            async with fence.transaction(leader) as ours:
                await ours.execute(text(CHANGE.format(2)))
                waiter = asyncio.create_task(other.execute(text(CHANGE.format(2))))
                await site.wait_for_a_waiter()
                with pytest.raises(DBAPIError, match="1213"):
                    await ours.execute(text(CHANGE.format(1)))
                await waiter
                await other.rollback()
                await site.append(ours, leader.token, "unguarded")

    with Site(mariadb, "mariadb", "asyncmy") as site:
        with pytest.raises(Misuse, match="unguarded"):
            asyncio.run(story(site))
        assert site.entries() == ["one", "two"]


# --- refused before anything is done -------------------------------------------------------------


def test_h63_an_engine_in_autocommit_is_unfit(site: Site, bearer: MakeBearer) -> None:
    async def story() -> None:
        async with site.engine(isolation_level="AUTOCOMMIT") as engine:
            with pytest.raises(UnfitStore, match="AUTOCOMMIT"):
                await AsyncSqlFence(engine, domain="d").claim(bearer(5))

    asyncio.run(story())


def test_bad_arguments_are_told(bearer: MakeBearer) -> None:
    plain = sa.create_engine("sqlite://")
    with pytest.raises(InvalidArgument, match="engine"):
        AsyncSqlFence(plain, domain="d")  # type: ignore[arg-type]  # what is tested
    fence = AsyncSqlFence(create_async_engine("sqlite+aiosqlite:///never-made"), domain="d")
    with pytest.raises(InvalidArgument, match="attempts"):
        asyncio.run(fence.run(bearer(5), _nothing, attempts=0))
