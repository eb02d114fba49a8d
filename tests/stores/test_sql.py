"""The SQL fence without a database: arguments, names, and its table as migrations see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from stores.sql_bench import engine_of

from zkelect.errors import InvalidArgument, RequestFailed
from zkelect.stores.sql import SqlFence
from zkelect.stores.sql_table import ddl, fence_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stores.bearers import FakeBearer

    MakeBearer = Callable[..., FakeBearer]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    with engine_of(f"sqlite:///{tmp_path}/jobs.db") as engine:
        yield engine


@pytest.mark.parametrize("wrong", [None, "sqlite://", sa.MetaData()])
def test_what_is_no_engine_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="engine="):
        SqlFence(wrong, domain="d")


def test_an_engine_of_an_unknown_database_is_refused() -> None:
    engine = sa.create_mock_engine("oracle://", lambda *_: None)
    wrong: Any = engine
    with pytest.raises(InvalidArgument, match="engine="):
        SqlFence(wrong, domain="d")


@pytest.mark.parametrize("attempts", [0, -1, 1.5, None])
def test_bad_attempts_are_refused(engine: sa.Engine, bearer: MakeBearer, attempts: Any) -> None:
    with pytest.raises(InvalidArgument, match="attempts="):
        SqlFence(engine, domain="d").run(bearer(5), print, attempts=attempts)


def test_what_neither_leads_nor_is_a_token_is_refused(engine: sa.Engine) -> None:
    fence, wrong = SqlFence(engine, domain="d"), object()
    nobody: Any = wrong
    for act in (fence.claim, lambda who: fence.transaction(who).__enter__()):
        with pytest.raises(InvalidArgument, match="claimant"):
            act(nobody)


def test_a_store_that_cannot_be_reached_is_named(bearer: MakeBearer) -> None:
    path = "/none/such/folder/jobs.db"
    with (
        engine_of(f"sqlite:///{path}?timeout=9") as engine,
        pytest.raises(RequestFailed, match=f"sqlite:///{path}: connect failed: unable to open"),
    ):
        SqlFence(engine, domain="d").claim(bearer(5))


def test_a_pool_that_is_used_up_is_told(tmp_path: Path, bearer: MakeBearer) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with (
        engine_of(url, pool_size=1, max_overflow=0, pool_timeout=0.01) as engine,
        engine.connect(),
        pytest.raises(RequestFailed, match="QueuePool limit"),
    ):
        SqlFence(engine, domain="d").claim(bearer(5))


# --- the table ---------------------------------------------------------------------------------


def test_the_table_that_migrations_make_is_the_one_that_the_fence_uses(
    engine: sa.Engine, bearer: MakeBearer
) -> None:
    metadata = sa.MetaData()
    table = fence_table(metadata)
    assert fence_table(metadata) is table
    metadata.create_all(engine)
    fence, leader = SqlFence(engine, domain="d"), bearer(5)
    fence.claim(leader)
    with engine.connect() as connection:
        assert connection.execute(sa.select(table.c.domain, table.c.token)).all() == [
            ("d", str(leader.token))
        ]


def test_what_the_fence_makes_needs_no_migration(engine: sa.Engine, bearer: MakeBearer) -> None:
    """As Alembic's autogenerate compares: by name, column, type and nullability."""
    SqlFence(engine, domain="d").claim(bearer(5))
    found, table = sa.inspect(engine), fence_table(sa.MetaData())
    columns = {column["name"]: column for column in found.get_columns(table.name)}
    assert list(columns) == table.c.keys()
    for column in table.c:
        assert str(columns[column.name]["type"]) == str(column.type)
        assert columns[column.name]["nullable"] == column.nullable
    assert found.get_pk_constraint(table.name)["constrained_columns"] == ["domain"]


@pytest.mark.parametrize("dialect", [postgresql.dialect(), sqlite.dialect()])
def test_the_statement_in_a_message_is_one_line(dialect: sa.Dialect) -> None:
    statement = ddl(fence_table(sa.MetaData(), schema="app"), dialect)
    assert statement.startswith("CREATE TABLE app.zkelect_fence ( domain VARCHAR(255) NOT NULL,")
    assert "\n" not in statement
