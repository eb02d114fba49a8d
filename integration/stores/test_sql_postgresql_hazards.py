"""What a server can do to a guarded transaction: H52, H56, and H63, which is found by looking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from servers.pgbouncer import PgBouncer
from servers.postgresql import PostgreSql
from sqlalchemy import event, text
from stores.benches import entries, marked
from stores.postgresql_bench import *  # noqa: F403  # fixtures
from stores.sql_bench import SqlBench, engine_of

from zkelect.errors import (
    Fenced,
    FenceStateLost,
    LeadershipLost,
    RequestFailed,
    StoreBusy,
    UnfitStore,
)
from zkelect.stores.sql import SqlFence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stores.bearers import FakeBearer
    from stores.postgresql_bench import Started

    MakeBearer = Callable[..., FakeBearer]

SLEEP = text("select pg_sleep(60)")
WHO = text("select pg_backend_pid()")


# --- H52: a transaction that stays open --------------------------------------------------------


def test_h52_who_is_idle_in_its_transaction_is_ended_with_its_lease(
    bench: SqlBench, started: Started, bearer: MakeBearer
) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    old.lease = 0.3

    def dream() -> None:
        with fence.transaction(old) as transaction:
            bench.append(transaction, old.token, "before")
            bench.fence().claim(new)  # waits, and is let in
            bench.append(transaction, old.token, "after")

    with pytest.raises(RequestFailed, match="idle-in-transaction timeout; nothing was written"):
        dream()
    assert (marked(fence), bench.log()) == (new.token, [])


def test_h52_a_statement_is_ended_with_the_lease(bench: SqlBench, bearer: MakeBearer) -> None:
    fence, old = bench.fence(), bearer(5)
    fence.claim(old)
    old.lease = 0.3
    with (
        pytest.raises(sa.exc.OperationalError, match="statement timeout") as caught,
        fence.transaction(old) as transaction,
    ):
        transaction.execute(SLEEP)
    assert "lease" in caught.value.__notes__[0]
    bench.fence().claim(bearer(6))


def test_h52_what_the_server_ended_after_the_lease_is_told_as_lost(
    postgresql: PostgreSql, bench: SqlBench, bearer: MakeBearer
) -> None:
    fence, old = bench.fence(), bearer(5)
    fence.claim(old)

    def overstay() -> None:
        with fence.transaction(old) as transaction:
            server_process = transaction.scalar(WHO)
            old.lease = 0.0
            postgresql.ask(f"select pg_terminate_backend({server_process})")

    with pytest.raises(LeadershipLost):
        overstay()


@pytest.mark.parametrize("ending", ["by its timeout", "with its session"])
def test_h52_a_statement_that_the_server_ended_after_the_lease_is_told_as_lost(
    postgresql: PostgreSql, bench: SqlBench, bearer: MakeBearer, ending: str
) -> None:
    fence, old = bench.fence(), bearer(5)
    fence.claim(old)
    old.lease = 0.3

    def end_the_lease(connection: sa.Connection, _: Any, statement: str, *__: Any) -> None:
        if "pg_sleep" in statement:  # it is on its way, the fence has looked
            old.lease = 0.0
            if ending == "with its session":
                process: Any = connection.connection.driver_connection
                postgresql.ask(f"select pg_terminate_backend({process.info.backend_pid})")

    event.listen(bench.engine, "before_cursor_execute", end_the_lease)
    with pytest.raises(LeadershipLost) as caught, fence.transaction(old) as transaction:
        transaction.execute(SLEEP)
    assert isinstance(caught.value.__cause__, sa.exc.DBAPIError)


def test_h52_after_the_lease_no_statement_is_sent(bench: SqlBench, bearer: MakeBearer) -> None:
    """Each would keep the successor's claim waiting for one more lease."""
    fence, old = bench.fence(), bearer(5)
    fence.claim(old)

    def overstay() -> None:
        with fence.transaction(old) as transaction:
            old.lease = 0.0
            transaction.execute(SLEEP)

    with pytest.raises(LeadershipLost):
        overstay()


def test_h52_shorter_limits_of_the_user_stay(engine: sa.Engine, bearer: MakeBearer) -> None:
    query = text(
        "select current_setting('lock_timeout'), current_setting('statement_timeout'),"
        " current_setting('idle_in_transaction_session_timeout')"
    )
    own = "-c lock_timeout=7ms -c statement_timeout=2min -c idle_in_transaction_session_timeout=0"
    leader = bearer(5, lease=60.0)
    with engine_of(engine.url, connect_args={"options": own}) as limited:
        fence = SqlFence(limited, domain="d", timeout=5.0)
        fence.claim(leader)
        with fence.transaction(leader) as transaction:
            assert transaction.execute(query).one() == ("7ms", "1min", "1min")
        with fence.transaction(leader.token) as transaction:
            assert transaction.execute(query).one() == ("7ms", "2min", "0")


def test_h52_a_busy_store_names_the_server_process(
    bench: SqlBench, engine: sa.Engine, bearer: MakeBearer
) -> None:
    old = bearer(5)
    bench.fence().claim(old)
    with engine_of(engine.url, connect_args={"application_name": "worker-7"}) as theirs:
        holding = SqlFence(theirs, domain="d")
        with holding.transaction(old) as transaction:
            process = transaction.scalar(WHO)
            told = rf"server process {process} \(worker-7, 127.0.0.1, idle in transaction\)"
            with pytest.raises(StoreBusy, match=told) as caught:
                bench.fence(timeout=0.05).claim(bearer(6))
    assert isinstance(caught.value.__cause__, sa.exc.DBAPIError)


def test_h52_who_locks_the_row_by_hand_is_in_the_way_too(
    bench: SqlBench, engine: sa.Engine, bearer: MakeBearer
) -> None:
    old = bearer(5)
    bench.fence().claim(old)
    with engine.begin() as connection:
        connection.execute(text("select * from zkelect_fence for update"))
        with pytest.raises(StoreBusy, match="could not be told"):
            bench.fence(timeout=0.05).claim(bearer(6))
        with pytest.raises(StoreBusy):
            bench.write(bench.fence(timeout=0.05), old, "late")


# --- connections that end ----------------------------------------------------------------------


@pytest.fixture
def killed(postgresql: PostgreSql) -> Callable[[sa.Connection], None]:
    def kill(connection: sa.Connection) -> None:
        postgresql.ask(f"select pg_terminate_backend({connection.scalar(WHO)})")

    return kill


def test_a_connection_that_ends_in_the_block_is_told(
    bench: SqlBench, bearer: MakeBearer, killed: Callable[[sa.Connection], None]
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def be_cut() -> None:
        with fence.transaction(leader) as transaction:
            killed(transaction)
            bench.append(transaction, leader.token, "gone")

    with pytest.raises(RequestFailed, match="nothing was written") as caught:
        be_cut()
    assert isinstance(caught.value.__cause__, sa.exc.DBAPIError)
    bench.write(fence, leader, "on another connection")
    assert entries(bench) == ["on another connection"]


def test_a_connection_that_ends_is_told_though_its_error_was_caught(
    bench: SqlBench, bearer: MakeBearer, killed: Callable[[sa.Connection], None]
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def swallow() -> None:
        with fence.transaction(leader) as transaction:
            killed(transaction)
            with pytest.raises(sa.exc.DBAPIError):
                bench.append(transaction, leader.token, "gone")

    with pytest.raises(RequestFailed, match="the connection is gone"):
        swallow()


def test_an_error_in_the_block_is_not_hidden_by_a_connection_that_ended(
    bench: SqlBench, bearer: MakeBearer, killed: Callable[[sa.Connection], None]
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def stumble() -> None:
        with fence.transaction(leader) as transaction:
            killed(transaction)
            raise KeyError

    with pytest.raises(KeyError):
        stumble()
    bench.write(fence, leader, "on another connection")


def test_a_connection_that_ends_before_the_commit_leaves_it_unknown(
    bench: SqlBench, bearer: MakeBearer, killed: Callable[[sa.Connection], None]
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def be_cut() -> None:
        with fence.transaction(leader) as transaction:
            bench.append(transaction, leader.token, "gone")
            killed(transaction)

    with pytest.raises(RequestFailed, match="it may have been committed"):
        be_cut()
    assert bench.log() == []


def test_a_commit_of_unknown_outcome_is_told_so_though_the_lease_is_over_by_then(
    bench: SqlBench,
    bearer: MakeBearer,
    killed: Callable[[sa.Connection], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LeadershipLost would promise that nothing was written."""
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    leases = iter([60.0])

    def be_cut() -> None:
        with fence.transaction(leader) as transaction:
            bench.append(transaction, leader.token, "gone")
            killed(transaction)
            monkeypatch.setattr(
                type(leader), "lease", property(lambda _: next(leases, 0.0)), raising=False
            )

    with pytest.raises(RequestFailed, match="it may have been committed"):
        be_cut()


def test_a_server_that_cannot_be_reached_is_told_without_the_password(
    postgresql: PostgreSql, bearer: MakeBearer
) -> None:
    url = sa.make_url(postgresql.url()).set(port=1, password="secret")
    with engine_of(url) as engine, pytest.raises(RequestFailed, match="connect failed") as caught:
        SqlFence(engine, domain="d").claim(bearer(5))
    assert "secret" not in f"{caught.value!r} {caught.value.__cause__!r}"


# --- H56: another server takes over ------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[PostgreSql, PostgreSql]]:
    with PostgreSql() as primary, primary.standby() as standby:
        yield primary, standby


def test_h56_a_standby_that_missed_the_claim_lets_nobody_pass(
    pair: tuple[PostgreSql, PostgreSql], bearer: MakeBearer
) -> None:
    primary, standby = pair
    old, new, next_term = bearer(5), bearer(6), bearer(7)
    hosts = [f"127.0.0.1:{server.port}" for server in pair]
    url = sa.make_url(primary.url()).set(host=None, port=None, query={"host": hosts})
    writable = {"connect_args": {"target_session_attrs": "read-write"}, "poolclass": sa.NullPool}
    with engine_of(url, **writable) as engine:
        bench = SqlBench(engine)
        theirs, ours, fresh = bench.fence(), bench.fence(), bench.fence()
        theirs.claim(old)
        standby.wait_replayed(primary)
        standby.ask("alter system set primary_conninfo = ''")
        standby.ask("select pg_reload_conf()")
        standby.process.wait(
            "left its primary",
            lambda: primary.ask("select count(*) from pg_stat_replication") == 0,
        )
        ours.claim(new)
        bench.write(ours, new, "lost")
        primary.kill()
        standby.promote()

        assert marked(fresh) == old.token  # the older mark has survived
        for fence, leader in ((theirs, old), (ours, new), (fresh, old), (fresh, new)):
            with pytest.raises(FenceStateLost, match=r"/00000001, this is .*/00000002"):
                bench.write(fence, leader, "on the standby")
            with pytest.raises(FenceStateLost):
                fence.claim(leader)
        with pytest.raises(FenceStateLost, match="initialize=True"):
            fresh.claim(next_term)
        fresh.claim(next_term, initialize=True)
        bench.write(fresh, next_term, "on checked data")
        for fence, leader in ((theirs, old), (ours, new)):
            with pytest.raises(Fenced):
                bench.write(fence, leader, "stale")
        assert entries(bench) == ["on checked data"]


def test_h56_a_copy_of_the_data_on_another_server_is_told(
    postgresql: PostgreSql, bench: SqlBench, engine: sa.Engine, bearer: MakeBearer
) -> None:
    """As after pg_dump and a restore elsewhere: another system identifier."""
    leader = bearer(5)
    bench.fence().claim(leader)
    with PostgreSql() as other, engine_of(other.url()) as elsewhere:
        copy = SqlBench(elsewhere)
        copy.fence(domain="other").claim(leader)  # makes the table
        with engine.connect() as source, elsewhere.begin() as target:
            row = source.execute(text("select * from zkelect_fence")).mappings().one()
            insert = (
                "insert into zkelect_fence values (:domain, :token, :election, :holder, :origin)"
            )
            target.execute(text(insert), dict(row))
        for act in (copy.fence().claim, lambda who: copy.write(copy.fence(), who, "there")):
            with pytest.raises(FenceStateLost):
                act(leader)


def test_a_restart_of_the_same_server_is_no_loss(bearer: MakeBearer) -> None:
    leader = bearer(5)
    with PostgreSql() as server, engine_of(server.url(), poolclass=sa.NullPool) as engine:
        bench, fence = SqlBench(engine), SqlFence(engine, domain="d")
        fence.claim(leader)
        server.kill()
        server.start()
        bench.write(fence, leader, "after a crash")
        assert entries(bench) == ["after a crash"]


# --- H63: setups that cannot keep the promise --------------------------------------------------


def refused(engine: sa.Engine, leader: FakeBearer, **options: Any) -> str:
    fence = SqlFence(engine, domain="d", **options)
    with pytest.raises(UnfitStore, match="Nothing was claimed or written") as caught:
        fence.claim(leader)
    assert leader.ends == []
    return str(caught.value)


@pytest.mark.parametrize(
    "options", [{"isolation_level": "AUTOCOMMIT"}, {"connect_args": {"autocommit": True}}]
)
def test_h63_autocommit_is_refused(
    engine: sa.Engine, bearer: MakeBearer, options: dict[str, Any]
) -> None:
    with engine_of(engine.url, **options) as autocommit:
        assert "AUTOCOMMIT" in refused(autocommit, bearer(5))
        assert not sa.inspect(engine).has_table("zkelect_fence")


def test_h63_autocommit_is_refused_in_a_transaction_too(
    bench: SqlBench, bearer: MakeBearer
) -> None:
    leader = bearer(5)
    bench.fence().claim(leader)
    autocommit = SqlFence(bench.engine.execution_options(isolation_level="AUTOCOMMIT"), domain="d")
    with pytest.raises(UnfitStore, match="AUTOCOMMIT"):
        bench.write(autocommit, leader, "unguarded")
    assert bench.log() == []


def test_h63_a_standby_is_refused(pair: tuple[PostgreSql, PostgreSql], bearer: MakeBearer) -> None:
    primary, standby = pair
    with engine_of(primary.url()) as engine, engine_of(standby.url()) as reading:
        assert "standby" in refused(reading, bearer(5))
        SqlFence(engine, domain="d").claim(bearer(5))
        standby.wait_replayed(primary)
        fence = SqlFence(reading, domain="d")
        assert marked(fence) == bearer(5).token
        with pytest.raises(UnfitStore, match="read-only"), fence.transaction(bearer(5)):
            pass


def test_h63_read_only_transactions_are_refused(engine: sa.Engine, bearer: MakeBearer) -> None:
    options = {"options": "-c default_transaction_read_only=on"}
    with engine_of(engine.url, connect_args=options) as reading:
        assert "default_transaction_read_only" in refused(reading, bearer(5))


def test_h63_pgbouncer_in_statement_mode_is_refused(
    postgresql: PostgreSql, bearer: MakeBearer
) -> None:
    with PgBouncer(postgresql, "statement") as pool, engine_of(pool.url()) as engine:
        assert "statement pooling mode" in refused(engine, bearer(5))


def test_h63_a_pool_that_knows_no_prepared_statements_is_told(
    postgresql: PostgreSql, postgresql_database: str, bearer: MakeBearer
) -> None:
    """Two clients share one server connection, and name their statements alike."""
    leader = bearer(5)
    with (
        PgBouncer(postgresql, "transaction", size=1) as pool,
        engine_of(pool.url(database=postgresql_database)) as engine,
        engine.connect() as one,
        engine.connect() as other,
    ):
        fence = SqlFence(engine, domain="d")
        fence.claim(leader)

        def write(on: sa.Connection) -> None:
            for _ in range(10):  # psycopg prepares what it sends for the sixth time
                with fence.transaction(leader, on):
                    pass

        write(one)
        with pytest.raises(UnfitStore, match="prepare_threshold"):
            write(other)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("alter table zkelect_fence set unlogged", "UNLOGGED"),
        ("drop table zkelect_fence; create view zkelect_fence as select 1", "no plain table"),
        ("drop table zkelect_fence; create table zkelect_fence (x int)", "does not exist"),
    ],
)
def test_h63_a_table_that_cannot_keep_marks_is_refused(
    engine: sa.Engine, bearer: MakeBearer, change: str, told: str
) -> None:
    SqlFence(engine, domain="d").claim(bearer(5))
    with engine.begin() as connection:
        connection.exec_driver_sql(change)
    assert told in refused(engine, bearer(6))


def test_h63_a_temporary_schema_is_refused(engine: sa.Engine, bearer: MakeBearer) -> None:
    assert "temporary table" in refused(engine, bearer(5), schema="pg_temp")


@pytest.fixture
def poor(postgresql: PostgreSql, engine: sa.Engine) -> Iterator[sa.Engine]:
    """An engine of a role that may do nothing."""
    postgresql.ask("create role poor login")
    with engine_of(engine.url.set(username="poor")) as poor:
        yield poor
    postgresql.ask("drop owned by poor", database=engine.url.database or "")
    postgresql.ask("drop role poor")


def test_h63_a_role_that_may_not_make_the_table_is_told_how(
    engine: sa.Engine, poor: sa.Engine, bearer: MakeBearer
) -> None:
    """What the message says is enough, word for word."""
    leader = bearer(5)
    told = refused(poor, leader)
    statement = told[told.index("CREATE TABLE") : told.index(". Nothing was claimed")]
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    assert "SELECT, INSERT and UPDATE" in refused(poor, leader)
    with engine.begin() as connection:
        connection.exec_driver_sql("grant select, insert, update on zkelect_fence to poor")
    fence = SqlFence(poor, domain="d")
    fence.claim(leader)
    with fence.transaction(leader):
        pass


def test_h63_a_schema_that_is_missing_is_named(engine: sa.Engine, bearer: MakeBearer) -> None:
    assert 'schema "none" does not exist' in refused(engine, bearer(5), schema="none")


def test_h63_a_server_that_hides_its_identity_is_refused(
    postgresql: PostgreSql, engine: sa.Engine, poor: sa.Engine, bearer: MakeBearer
) -> None:
    SqlFence(engine, domain="d").claim(bearer(5))
    with engine.begin() as connection:
        connection.exec_driver_sql("grant all on zkelect_fence to poor")
        connection.exec_driver_sql("revoke execute on function pg_control_system from public")
    assert "pg_control_system" in refused(poor, bearer(6))
