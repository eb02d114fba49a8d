"""Real servers for the stores; each is started when the first test asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from servers.mariadb import MariaDb
from servers.pgbouncer import PgBouncer
from servers.postgresql import PostgreSql
from servers.redis import RedisServer
from stores.bearers import FakeBearer, make_bearer, make_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.token import Token

pytest.register_assert_rewrite("stores.contract", "stores.transactions")


# --- who writes ------------------------------------------------------------------------------


@pytest.fixture
def token() -> Callable[..., Token]:
    return make_token


@pytest.fixture
def bearer() -> Callable[..., FakeBearer]:
    """Make the leadership of the candidate that was created at this czxid."""
    return make_bearer


# --- servers for tests that do not harm them -------------------------------------------------


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSql]:
    with PostgreSql() as server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgresql: PostgreSql) -> Iterator[PgBouncer]:
    """A pool in transaction mode, the mode that most have."""
    with PgBouncer(postgresql, "transaction") as pool:
        yield pool


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    with MariaDb() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


# --- a place for one test --------------------------------------------------------------------


@pytest.fixture
def postgresql_database(postgresql: PostgreSql) -> str:
    """The name of an empty database on that server."""
    return postgresql.create_database()


@pytest.fixture
def mariadb_database(mariadb: MariaDb) -> str:
    """The name of an empty database on that server."""
    return mariadb.create_database()


@pytest.fixture
def redis(redis_server: RedisServer) -> RedisServer:
    """That server, empty."""
    redis_server.ask("FLUSHALL")
    return redis_server
