"""The fence for asyncio keeps the contract, with each driver that its docstring names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stores.async_bench import AsyncSqlBench, EventLoop
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.sql_bench import engine_of
from stores.transactions import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PLAIN_DRIVERS = {"postgresql": "psycopg", "mariadb": "pymysql"}


@pytest.fixture(
    params=[
        ("postgresql", "asyncpg"),
        ("postgresql", "psycopg"),
        ("mariadb", "asyncmy"),
        ("mariadb", "aiomysql"),
        ("sqlite", "aiosqlite"),
    ],
    ids="-".join,
)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The URLs of one new database: with a plain driver, and with one for asyncio."""
    kind, driver = request.param
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/data.db", f"sqlite+{driver}:///{tmp_path}/data.db"
    server: Any = request.getfixturevalue(kind)
    database = server.create_database()
    return (
        server.url(_PLAIN_DRIVERS[kind], database=database),
        server.url(driver, database=database),
    )


@pytest.fixture
def bench(urls: tuple[str, str]) -> Iterator[AsyncSqlBench]:
    plain, asynchronous = urls
    with engine_of(plain) as engine, EventLoop(asynchronous) as loop:
        yield AsyncSqlBench(engine, loop)
