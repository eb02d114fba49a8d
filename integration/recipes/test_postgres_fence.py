"""The token in the fence table: written before anything else on a new timeline (grade A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg
    from recipes.postgres_node import PostgresNode
    from recipes.stage import Stage

pytestmark = pytest.mark.timeout(300)


def test_the_first_row_of_a_timeline_is_the_token(
    postgres_stage: Callable[..., Stage[PostgresNode]], path: str
) -> None:
    """By PostgreSQL's own transaction numbers: no row of a client is older on that server."""
    here = postgres_stage()
    here.fail_over()
    confirmed = here.writer.confirmed[-1].number
    with here.cluster[here.primary].connect() as connection:
        claimed = number(connection, "select xmin from zkelect_fence where domain = %s", path)
        query = "select min(xmin::text::bigint) from written where number >= %s"
        first = next(
            row.number
            for row in here.writer.confirmed
            if row.port == here.cluster[here.primary].port
        )
        assert first <= confirmed
        assert claimed < number(connection, query, first)


def number(connection: psycopg.Connection[tuple[object]], query: str, value: object) -> int:
    row = connection.execute(query.encode(), (value,)).fetchone()
    assert row is not None
    return int(str(row[0]))
