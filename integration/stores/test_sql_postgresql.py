"""The SQL fence on PostgreSQL: the contract and open transactions, directly and through a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.sql_bench import SqlBench, engine_of
from stores.transactions import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.pgbouncer import PgBouncer
    from servers.postgresql import PostgreSql


@pytest.fixture(params=["psycopg", "psycopg2", "pgbouncer"])
def bench(
    request: pytest.FixtureRequest,
    postgresql: PostgreSql,
    pgbouncer: PgBouncer,
    postgresql_database: str,
) -> Iterator[SqlBench]:
    """On psycopg 3; on psycopg2; through pgbouncer, which lends a server for a transaction."""
    if request.param == "pgbouncer":
        url = pgbouncer.url(database=postgresql_database)
        options = {"connect_args": {"prepare_threshold": None}}  # it knows no statements by name
    else:
        url, options = postgresql.url(request.param, database=postgresql_database), {}
    with engine_of(url, **options) as engine:
        yield SqlBench(engine)
