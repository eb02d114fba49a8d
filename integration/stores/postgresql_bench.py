"""What the tests on PostgreSQL share: engine, bench, and who waits for whom at the server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from stores.sql_bench import SqlBench, engine_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from servers.postgresql import PostgreSql

__all__ = ["SqlBench", "Started", "bench", "engine", "engine_of", "started"]


@pytest.fixture
def engine(postgresql: PostgreSql, postgresql_database: str) -> Iterator[sa.Engine]:
    with engine_of(postgresql.url(database=postgresql_database), pool_size=40) as engine:
        yield engine


@pytest.fixture
def bench(engine: sa.Engine) -> SqlBench:
    return SqlBench(engine)


class Started:
    """Starts calls in threads, and waits until they have ended or wait for a lock."""

    def __init__(self, server: PostgreSql, pool: ThreadPoolExecutor) -> None:
        self._server, self._pool = server, pool

    def waiting(self) -> int:
        """How many wait for a lock now."""
        return self._server.count_waiting()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start it, and return when it has ended or one more than before waits for a lock."""
        before = self.waiting()
        future = self._pool.submit(function, *arguments)
        self._server.process.wait("made it wait", lambda: future.done() or self.waiting() > before)
        return future


@pytest.fixture
def started(postgresql: PostgreSql) -> Iterator[Started]:
    with ThreadPoolExecutor(20) as pool:
        yield Started(postgresql, pool)
