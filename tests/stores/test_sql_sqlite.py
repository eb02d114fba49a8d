"""The SQL fence on SQLite: what only SQLite shows."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event, text
from sqlalchemy.orm import Session
from stores.benches import entries, marked
from stores.sql_bench import SqlBench, engine_of

from zkelect.errors import Fenced, InvalidArgument, Misuse, RequestFailed, StoreBusy, UnfitStore
from zkelect.stores import SqliteFence
from zkelect.stores.sql import SqlFence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stores.bearers import FakeBearer

    MakeBearer = Callable[..., FakeBearer]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def engine(path: Path) -> Iterator[sa.Engine]:
    with engine_of(f"sqlite:///{path}") as engine:
        yield engine


@pytest.fixture
def bench(engine: sa.Engine) -> SqlBench:
    return SqlBench(engine)


def begin_ourselves(engine: sa.Engine) -> None:
    """Let SQLAlchemy, not the driver, begin transactions, as its documentation of SQLite has it."""

    def take_over(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    event.listen(engine, "connect", take_over)
    event.listen(engine, "begin", begin)


# --- the file ----------------------------------------------------------------------------------


def test_both_sqlite_fences_share_marks(bench: SqlBench, path: Path, bearer: MakeBearer) -> None:
    plain, fence, leader = SqliteFence(path, domain="d"), bench.fence(), bearer(5)
    fence.claim(leader)
    with plain.transaction(leader) as db:
        db.execute("insert into log (token, entry) values (?, 'plain')", (str(leader.token),))
    plain.claim(bearer(6))
    assert plain.status() == fence.status()
    assert entries(bench) == ["plain"]


def test_where_the_engine_begins_transactions_itself(path: Path, bearer: MakeBearer) -> None:
    leader = bearer(5)
    with engine_of(f"sqlite:///{path}") as engine:
        begin_ourselves(engine)
        bench = SqlBench(engine)
        fence = bench.fence()
        fence.claim(leader)
        with fence.transaction(leader) as connection:
            bench.append(connection, leader.token, "kept")
            with connection.begin_nested() as savepoint:
                bench.append(connection, leader.token, "undone")
                savepoint.rollback()
        assert entries(bench) == ["kept"]


def test_a_guarded_insert_is_one_statement_more(
    bench: SqlBench, engine: sa.Engine, bearer: MakeBearer
) -> None:
    """Beside the BEGIN, which the driver sends for itself when nobody guards."""
    fence, leader = SqlFence(engine, domain="d"), bearer(5)
    fence.claim(leader)
    bench.write(fence, leader, "first")  # asks the connection for its own timeout
    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: sent.append(given[2].split()[0]))
    bench.write(fence, leader, "second")
    assert sent == ["BEGIN", "SELECT", "insert"]


def test_a_connection_gets_its_own_timeout_back(bench: SqlBench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(timeout=0.3), bearer(5)
    fence.claim(leader)
    query = text("pragma busy_timeout")
    with fence.transaction(leader) as connection:
        assert connection.scalar(query) == 300
    with bench.engine.connect() as connection:
        assert connection.scalar(query) == 5000


def test_a_claim_is_durable_in_rollback_mode(bench: SqlBench, bearer: MakeBearer) -> None:
    bench.fence().claim(bearer(5))
    with bench.engine.connect() as connection:
        assert connection.scalar(text("pragma synchronous")) == 3  # EXTRA


# --- H52: who is in the way --------------------------------------------------------------------


def test_h52_a_busy_store_names_the_process(bench: SqlBench, bearer: MakeBearer) -> None:
    fence, old = bench.fence(), bearer(5)
    fence.claim(old)
    told = rf"claim waited 0\.01 s for process {os.getpid()} \(this one\)"
    with fence.transaction(old), pytest.raises(StoreBusy, match=told):
        bench.fence(timeout=0.01).claim(bearer(6))


@pytest.mark.parametrize("session", [False, True])
def test_a_commit_that_readers_keep_waiting_writes_nothing(
    bench: SqlBench, path: Path, bearer: MakeBearer, session: bool
) -> None:
    """Nor leaves its transaction open, for the next user of the connection to commit."""
    fence, leader = bench.fence(timeout=0.02), bearer(5)
    fence.claim(leader)
    for _ in range(2):
        bench.write(fence, leader, "read")
    with engine_of(f"sqlite:///{path}", connect_args={"timeout": 0.02}) as hasty:
        fence = SqlFence(hasty, domain="d", timeout=0.02)
        with (
            closing(sqlite3.connect(path)) as reader,
            closing(reader.execute("select * from log")) as reading,
            Session(hasty) as own,
        ):
            reading.fetchone()
            on: Any = (own,) if session else ()
            with (
                pytest.raises(StoreBusy, match="commit waited"),
                fence.transaction(leader, *on) as db,
            ):
                bench.append(db, leader.token, "lost")
            with pytest.raises(StoreBusy):
                fence.claim(bearer(6))
        with hasty.begin() as connection:
            bench.append(connection, leader.token, "unguarded")
    assert entries(bench) == ["read", "read", "unguarded"]
    assert marked(fence) == leader.token


# --- H53: the block ----------------------------------------------------------------------------


@pytest.mark.parametrize("sql", ["commit", "-- now\nrollback", "end", "attach ':memory:' as x"])
def test_h53_transaction_control_as_sql_is_refused(
    bench: SqlBench, bearer: MakeBearer, sql: str
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    with fence.transaction(leader) as connection:
        bench.append(connection, leader.token, "before")
        with pytest.raises(InvalidArgument, match="leave the block"):
            connection.execute(text(sql))
        bench.append(connection, leader.token, "after")
    assert entries(bench) == ["before", "after"]


def test_h53_a_claim_that_comes_before_the_lock_is_seen(
    bench: SqlBench, path: Path, bearer: MakeBearer
) -> None:
    """Just before the lock is taken, a successor claims: the guard reads after that."""
    fence, old, successor = bench.fence(), bearer(5), SqliteFence(path, domain="d")
    fence.claim(old)

    def overtake(*given: Any) -> None:
        if given[2] == "BEGIN IMMEDIATE":
            successor.claim(bearer(6))

    event.listen(bench.engine, "before_cursor_execute", overtake)
    with pytest.raises(Fenced):
        bench.write(fence, old, "stale")
    assert bench.log() == []


def test_h53_after_a_hidden_rollback_nothing_is_written(
    bench: SqlBench, bearer: MakeBearer
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def carry_on() -> None:
        with fence.transaction(leader) as connection:
            bench.append(connection, leader.token, "before")
            with pytest.raises(sa.exc.IntegrityError):
                connection.execute(text("insert or rollback into log values (1, 'x', 'x')"))
            bench.append(connection, leader.token, "after")

    with pytest.raises(Misuse, match="unguarded"):
        carry_on()
    assert bench.log() == []


# --- H63: setups that cannot keep the promise --------------------------------------------------


def refused(engine: sa.Engine, leader: FakeBearer) -> str:
    with pytest.raises(UnfitStore) as caught:
        SqlFence(engine, domain="d").claim(leader)
    return str(caught.value)


def test_h63_autocommit_is_refused(path: Path, bearer: MakeBearer) -> None:
    with engine_of(f"sqlite:///{path}", isolation_level="AUTOCOMMIT") as engine:
        assert "AUTOCOMMIT" in refused(engine, bearer(5))


def test_h63_a_database_in_memory_is_refused(bearer: MakeBearer) -> None:
    with engine_of("sqlite://") as engine:
        assert "in memory" in refused(engine, bearer(5))


@pytest.mark.parametrize(
    ("pragma", "told"),
    [("synchronous = off", "synchronous is OFF"), ("journal_mode = memory", "mode is memory")],
)
def test_h63_what_a_power_cut_could_undo_is_refused(
    engine: sa.Engine, bearer: MakeBearer, pragma: str, told: str
) -> None:
    event.listen(engine, "connect", lambda connection, _: connection.execute(f"pragma {pragma}"))
    assert told in refused(engine, bearer(5))


def test_h63_a_file_that_cannot_be_written_is_refused(
    bench: SqlBench, path: Path, bearer: MakeBearer
) -> None:
    bench.fence().claim(bearer(5))
    with engine_of(f"sqlite:///file:{path}?mode=ro&uri=true") as engine:
        assert "readonly" in refused(engine, bearer(6))


def test_a_file_that_is_no_database_is_told(path: Path, bearer: MakeBearer) -> None:
    path.write_text("no database " * 100)
    with engine_of(f"sqlite:///{path}") as engine, pytest.raises(RequestFailed) as caught:
        SqlFence(engine, domain="d").claim(bearer(5))
    assert "not a database" in str(caught.value)
    assert isinstance(caught.value.__cause__, sa.exc.DBAPIError)


def test_a_mark_that_is_no_token_is_told(bench: SqlBench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    with bench.engine.begin() as connection:
        connection.execute(text("update zkelect_fence set token = :x"), {"x": "x" * 59})
    for ask in (fence.status, lambda: fence.claim(leader), lambda: bench.write(fence, leader, "x")):
        with pytest.raises(RequestFailed, match="reading the mark"):
            ask()
