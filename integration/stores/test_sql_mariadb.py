"""What the SQL fence meets on MariaDB alone: its timeouts, its errors, its replicas."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from pymysql.constants import CLIENT
from servers.mariadb import USER, MariaDb
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import Session
from stores.benches import entries, marked
from stores.sql_bench import SqlBench, engine_of

from zkelect.errors import (
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LeadershipLost,
    Misuse,
    RequestFailed,
    StoreBusy,
)
from zkelect.stores.sql import SqlFence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stores.bearers import FakeBearer

    MakeBearer = Callable[..., FakeBearer]

TIMEOUTS = text("select @@max_statement_time, @@idle_transaction_timeout")


@pytest.fixture
def url(mariadb: MariaDb, mariadb_database: str) -> str:
    return mariadb.url(database=mariadb_database)


@pytest.fixture
def bench(url: str) -> Iterator[SqlBench]:
    with engine_of(url) as engine:
        yield SqlBench(engine)


# --- H52: nobody holds the row for ever -------------------------------------------------------


def test_h52_who_idles_in_a_transaction_is_ended_with_its_lease(
    bench: SqlBench, bearer: MakeBearer
) -> None:
    fence, idle, successor = bench.fence(), bearer(5, lease=1.0), bearer(6)
    fence.claim(idle)

    def idle_away() -> None:
        with fence.transaction(idle) as connection:
            bench.append(connection, idle.token, "never committed")
            bench.fence().claim(successor)  # waits until the server has ended the other one

    with pytest.raises(RequestFailed):
        idle_away()
    bench.write(fence, successor, "next")
    assert entries(bench) == ["next"]


def test_h52_a_statement_ends_with_the_lease(bench: SqlBench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5, lease=0.2)
    fence.claim(leader)
    bench.write(fence, leader, "a row")
    with bench.engine.begin() as other:
        other.execute(text("select * from log for update"))

        def stay() -> None:
            with fence.transaction(leader) as connection:
                connection.execute(text("select * from log for update"))

        with pytest.raises(OperationalError, match="max_statement_time"):
            stay()


def test_h52_the_sessions_own_timeouts_are_put_back(url: str, bearer: MakeBearer) -> None:
    with engine_of(url, pool_size=1, max_overflow=0) as engine:
        bench, leader = SqlBench(engine), bearer(5, lease=7.5)
        fence = bench.fence()
        with engine.begin() as connection:
            connection.execute(text("set session max_statement_time = 3"))
        fence.claim(leader)
        with fence.transaction(leader) as connection:
            # Of the two, the shorter: its own three seconds, and the lease, rounded up.
            assert connection.execute(TIMEOUTS).one() == (3.0, 8)
        with pytest.raises(IntegrityError), fence.transaction(leader) as connection:
            connection.execute(text("insert into log values (1, '-', '-'), (1, '-', '-')"))
        bench.fence().claim(bearer(6))
        with pytest.raises(Fenced):
            bench.write(fence, leader, "late")
        with engine.connect() as connection:
            assert connection.execute(TIMEOUTS).one() == (3.0, 0)


def test_who_waits_is_told_which_connections_are_open(bench: SqlBench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(timeout=0.05), bearer(5)
    fence.claim(leader)
    with (
        fence.transaction(leader),
        pytest.raises(StoreBusy, match=rf"server connection \d+ \({USER}@127\.0\.0\.1"),
    ):
        fence.claim(bearer(6))


def test_h62_many_overlapping_transactions_do_not_keep_a_claim_out(
    bench: SqlBench, bearer: MakeBearer
) -> None:
    fence, old, new, writers = bench.fence(), bearer(5), bearer(6), 16
    fence.claim(old)
    inside = threading.Semaphore(0)
    pause = threading.Event()

    def write_without_pause() -> None:
        while True:
            with fence.transaction(old) as connection:
                bench.append(connection, old.token, "old")
                inside.release()
                pause.wait(0.05)

    with engine_of(bench.engine.url, pool_size=writers) as engine, ThreadPoolExecutor() as pool:
        fence = SqlFence(engine, domain="d", timeout=60.0)
        ends = [pool.submit(write_without_pause).exception for _ in range(writers)]
        for _ in range(2 * writers):  # none of the first ones is still alone
            inside.acquire()
        successor = bench.fence()
        successor.claim(new)
        committed = len(bench.log())
        bench.write(successor, new, "new")
        # The first of its threads that is refused ends the leadership for the others.
        assert {type(end()) for end in ends} <= {Fenced, LeadershipLost}
    assert entries(bench)[committed:] == ["new"]


# --- H54: what the driver counts --------------------------------------------------------------


@pytest.mark.parametrize("found_rows", [True, False])
def test_h54_an_equal_token_passes_whatever_rows_the_driver_counts(
    url: str, bearer: MakeBearer, found_rows: bool
) -> None:
    with engine_of(url) as engine:
        if not found_rows:
            event.listen(engine, "do_connect", _count_changed_rows)
        bench, leader = SqlBench(engine), bearer(5)
        for _ in range(3):
            bench.fence().claim(leader)
            bench.write(bench.fence(), leader, "again")
        with engine.begin() as connection:
            same = connection.execute(text("update zkelect_fence set token = token"))
            assert same.rowcount == int(found_rows)
        assert (marked(bench.fence()), len(bench.log())) == (leader.token, 3)


def _count_changed_rows(_: Any, __: Any, ___: Any, options: dict[str, Any]) -> None:
    options["client_flag"] &= ~CLIENT.FOUND_ROWS


# --- H53: the guard and the write are one transaction -----------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "create table more (n int)",
        "-- a comment\n  truncate log",
        "/* one */ # two\n commit",
        "/*!50000 create table more as */ select 1",
        "/*M!100000 create table more as */ select 1",
        "start transaction",
        "rollback",
        "set autocommit = 1",
        "lock tables log write",
        "call away()",
        "execute immediate 'commit'",
        "",
    ],
)
def test_h53_what_could_end_the_transaction_is_refused(
    bench: SqlBench, bearer: MakeBearer, statement: str
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def smuggle() -> None:
        with fence.transaction(leader) as connection:
            bench.append(connection, leader.token, "not to be committed")
            connection.exec_driver_sql(statement)

    with pytest.raises(InvalidArgument, match="MariaDB commits"):
        smuggle()
    assert bench.log() == []


@pytest.mark.parametrize(
    "statement",
    [
        "select 1",
        " (select 1) union (select 2)",
        "/* why */ select 1",
        "with w as (select 1) select * from w",
        "replace into log values (7, '-', '-')",
        "explain select * from log",
        "show tables",
    ],
)
def test_what_reads_and_writes_rows_passes(
    bench: SqlBench, bearer: MakeBearer, statement: str
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    with fence.transaction(leader) as connection:
        connection.exec_driver_sql(statement)


def test_a_savepoint_is_gone_back_to(bench: SqlBench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    with fence.transaction(leader) as connection:
        bench.append(connection, leader.token, "before")
        nested = connection.begin_nested()
        bench.append(connection, leader.token, "inside")
        with pytest.raises(IntegrityError):
            connection.execute(text("insert into log values (9, '-', '-'), (9, '-', '-')"))
        nested.rollback()
        bench.append(connection, leader.token, "after")
    assert entries(bench) == ["before", "after"]


def test_h53_after_a_deadlock_nothing_more_is_written(
    bench: SqlBench, bearer: MakeBearer, mariadb: MariaDb
) -> None:
    """It rolls the whole transaction back: what came next would be unguarded."""
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def catch_the_deadlock() -> None:
        with fence.transaction(leader) as connection:
            bench.append(connection, leader.token, "lost with the deadlock")
            with pytest.raises(DBAPIError, match="1213"):
                _lose_a_deadlock(bench, connection, mariadb)
            bench.append(connection, leader.token, "unguarded")

    with pytest.raises(Misuse, match="unguarded"):
        catch_the_deadlock()
    assert bench.log() == []


def test_after_a_deadlock_the_whole_is_run_again(
    bench: SqlBench, bearer: MakeBearer, mariadb: MariaDb
) -> None:
    fence, leader = bench.fence(), bearer(5)
    rounds: list[str] = []
    fence.claim(leader)

    def work(connection: sa.Connection) -> None:
        rounds.append(f"round {len(rounds)}")
        bench.append(connection, leader.token, rounds[-1])
        if len(rounds) == 1:
            _lose_a_deadlock(bench, connection, mariadb)

    fence.run(leader, work)
    assert entries(bench) == ["round 1"]


def _lose_a_deadlock(bench: SqlBench, ours: sa.Connection, server: MariaDb) -> None:
    """Meet somebody who has written more than we: InnoDB rolls back the smaller transaction."""
    write = text("update pair set entry = entry + :change where place = :place")
    with bench.engine.connect() as other, ThreadPoolExecutor(1) as pool:
        other.execute(text("create table pair (place int primary key, entry int)"))
        rows = [{"place": place} for place in range(100)]
        other.execute(text("insert into pair values (:place, 0)"), rows)
        other.commit()
        other.execute(text("update pair set entry = 1 where place > 1"))
        other.execute(write, {"change": 1, "place": 0})
        ours.execute(write, {"change": 1, "place": 1})
        waiting = pool.submit(other.execute, write, {"change": 1, "place": 1})
        server.process.wait("made it wait", lambda: server.count_waiting() > 0)
        try:
            ours.execute(write, {"change": 1, "place": 0})
        finally:
            waiting.result()


@pytest.mark.parametrize("isolation", ["READ UNCOMMITTED", "READ COMMITTED", "SERIALIZABLE"])
def test_other_isolation_levels(url: str, bearer: MakeBearer, isolation: str) -> None:
    with engine_of(url, isolation_level=isolation) as engine:
        bench, old, new = SqlBench(engine), bearer(5), bearer(6)
        fence = bench.fence()
        fence.claim(old)
        bench.write(fence, old, "old")
        bench.fence().claim(new)
        with pytest.raises(Fenced):
            bench.write(fence, old, "late")
        assert entries(bench) == ["old"]


def test_h53_a_read_before_the_guard_is_told(bench: SqlBench, bearer: MakeBearer) -> None:
    """It would give the block a view of the data that is older than the guard."""
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    with Session(bench.engine) as session:
        event.listen(session, "after_begin", _read_at_once)
        with pytest.raises(Misuse, match="first statement"), fence.transaction(leader, session):
            pass


def _read_at_once(_: Any, __: Any, connection: sa.Connection) -> None:
    connection.execute(text("select count(*) from log"))


@pytest.mark.parametrize("locked", [True, False])
def test_h52_a_writer_held_between_check_and_write_comes_before_its_successor(
    bench: SqlBench, bearer: MakeBearer, mariadb: MariaDb, locked: bool
) -> None:
    """With the row's lock; the other half is the control, where the guard only looks."""
    if not locked:
        event.listen(bench.engine, "before_cursor_execute", _only_look, retval=True)
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)

    def succeed() -> None:
        successor = bench.fence()
        successor.claim(new)
        bench.write(successor, new, "new")

    with ThreadPoolExecutor(1) as pool, fence.transaction(old) as connection:
        succession = pool.submit(succeed)
        mariadb.process.wait("shown it", lambda: succession.done() or mariadb.count_waiting() > 0)
        assert succession.done() is not locked
        bench.append(connection, old.token, "held")
    succession.result()
    assert entries(bench) == (["held", "new"] if locked else ["new", "held"])


def _only_look(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
    return statement.replace(" LOCK IN SHARE MODE", ""), parameters


# --- H56: a replica takes over ----------------------------------------------------------------


def test_h56_on_a_replica_that_took_over_nobody_writes(bearer: MakeBearer) -> None:
    with MariaDb() as primary, MariaDb() as replica:
        replica.follow(primary)
        with engine_of(primary.url()) as engine:
            bench, leader = SqlBench(engine), bearer(5)
            fence = bench.fence()
            fence.claim(leader)
            bench.write(fence, leader, "replicated")
            replica.wait_replayed(primary)
        primary.kill()
        with engine_of(replica.url()) as engine:
            _check_that_the_mark_counts_as_lost(engine, bearer)


def _check_that_the_mark_counts_as_lost(engine: sa.Engine, bearer: MakeBearer) -> None:
    fence, leader, next_term = SqlFence(engine, domain="d"), bearer(5), bearer(6)
    for claimant in (leader, next_term):
        with pytest.raises(FenceStateLost, match="server_id"):
            fence.claim(claimant)
    with pytest.raises(FenceStateLost), fence.transaction(leader):
        pass
    with pytest.raises(FenceStateLost):
        fence.claim(leader, initialize=True)
    fence.claim(next_term, initialize=True)
    with fence.transaction(next_term) as connection:
        assert connection.execute(text("select entry from log")).scalars().all() == ["replicated"]


def test_a_claim_whose_server_dies_is_made_again(bearer: MakeBearer) -> None:
    with MariaDb() as server, engine_of(server.url()) as engine:
        bench, old, new = SqlBench(engine), bearer(5), bearer(6)
        bench.fence().claim(old)
        with ThreadPoolExecutor(1) as pool:
            holder = server.connect("test", autocommit=False)
            holder.cursor().execute("select * from zkelect_fence for update")
            claim = pool.submit(bench.fence().claim, new)
            server.process.wait("made it wait", lambda: server.count_waiting() > 0)
            server.kill()
            assert isinstance(claim.exception(), RequestFailed)
            holder.close()
        server.start()
        bench.fence().claim(new)
        bench.write(bench.fence(), new, "after the restart")
        assert entries(bench) == ["after the restart"]
