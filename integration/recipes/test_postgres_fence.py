"""The token in the fence table: written before anything else on a new timeline (grade A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
import sqlalchemy

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_node import PostgresNode
    from recipes.stage import Stage

pytestmark = pytest.mark.timeout(300)


def test_the_new_primary_has_the_token_that_the_page_names(
    postgres_stage: Callable[..., Stage[PostgresNode]], path: str
) -> None:
    here = postgres_stage()
    old = marked(here, path)
    here.fail_over()
    page = here.crew.page
    assert page is not None
    new = marked(here, path)
    assert str(new) == page.primary_token
    assert new > old


def test_an_older_token_cannot_claim_any_more(
    postgres_stage: Callable[..., Stage[PostgresNode]], path: str
) -> None:
    here = postgres_stage()
    old = marked(here, path)
    here.fail_over()
    node = here.cluster[here.primary]
    url = f"postgresql+psycopg://zkelect@127.0.0.1:{node.port}/postgres"
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    fence = zkelect.stores.SqlFence(engine, domain=path)
    with pytest.raises(zkelect.Fenced):
        fence.claim(old)


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


def marked(here: Stage[PostgresNode], path: str) -> zkelect.Token:
    with here.cluster[here.primary].connect() as connection:
        query = "select token from zkelect_fence where domain = %s"
        row = connection.execute(query, (path,)).fetchone()
    assert row is not None
    return zkelect.Token.parse(row[0])


def number(connection: psycopg.Connection[tuple[object]], query: str, value: object) -> int:
    row = connection.execute(query.encode(), (value,)).fetchone()
    assert row is not None
    return int(str(row[0]))
