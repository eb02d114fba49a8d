"""``zkelect fence show`` reads the marks of real servers, and writes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine

from zkelect import stores
from zkelect.cli.main import command

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.mariadb import MariaDb
    from servers.postgresql import PostgreSql
    from servers.redis import RedisServer

    from zkelect.token import Token


def show(url: str, *options: str) -> Any:
    """Name the store by a variable of the environment."""
    runner, env = CliRunner(), {"STORE": url, "XDG_CONFIG_HOME": "/nonexistent"}
    return runner.invoke(command, ["fence", "show", "STORE", *options, "-o", "json"], env=env)


def shown(url: str, *options: str) -> dict[str, Any]:
    told = show(url, *options, "--domain", "billing")
    assert told.exit_code == 0, told.output
    (mark,) = json.loads(told.stdout)
    return dict(mark)


def claim(url: str, token: Token, schema: str | None = None) -> None:
    engine = create_engine(url)
    stores.SqlFence(engine, domain="billing", schema=schema).claim(token)
    engine.dispose()


def test_postgresql(
    postgresql: PostgreSql, postgresql_database: str, token: Callable[..., Token]
) -> None:
    url = postgresql.url(database=postgresql_database)
    assert shown(url)["token"] is None
    tables = "select count(*) from pg_tables where tablename = 'zkelect_fence'"
    assert postgresql.ask(tables, database=postgresql_database) == 0
    claim(url, token(5))
    assert shown(url)["token"] == str(token(5))
    assert shown(url)["origin"]


def test_a_schema_of_postgresql(
    postgresql: PostgreSql, postgresql_database: str, token: Callable[..., Token]
) -> None:
    url = postgresql.url(database=postgresql_database)
    with postgresql.connect(postgresql_database) as connection:
        connection.execute("create schema guarded")
    claim(url, token(5), "guarded")
    assert shown(url)["token"] is None
    assert shown(url, "--schema", "guarded")["token"] == str(token(5))


def test_mariadb(mariadb: MariaDb, mariadb_database: str, token: Callable[..., Token]) -> None:
    url = mariadb.url(database=mariadb_database)
    claim(url, token(6))
    assert shown(url)["token"] == str(token(6))
    assert shown(url.replace("mariadb+", "mysql+"))["token"] == str(token(6))


def test_redis(redis: RedisServer, token: Callable[..., Token]) -> None:
    assert shown(redis.url)["token"] is None
    fence = stores.RedisFence(redis.url, domain="billing")
    fence.claim(token(7), initialize=True)
    fence.close()
    assert shown(redis.url)["token"] == str(token(7))


@pytest.mark.parametrize(
    "secret", ["s3cret", "s3@cret", "s3%40cret", "s3/cret", "s3?cret", "s3#cret"]
)
def test_a_password_that_is_refused_by_the_server_is_not_shown(
    secret: str, mariadb: MariaDb, redis: RedisServer
) -> None:
    for url in (
        f"mysql+pymysql://nobody:{secret}@127.0.0.1:{mariadb.port}/test",
        f"redis://nobody:{secret}@127.0.0.1:{redis.port}/0",
    ):
        told = show(url, "--domain", "billing")
        assert told.exit_code != 0
        assert "127.0.0.1" in told.output
        assert "cret" not in told.output
