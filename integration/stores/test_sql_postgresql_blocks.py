"""What users do inside a guarded transaction, and with what: H53, sessions, isolation, errors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import event, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session
from sqlalchemy.orm import sessionmaker as make_sessionmaker
from stores.benches import entries, marked
from stores.postgresql_bench import *  # noqa: F403  # fixtures
from stores.sql_bench import SqlBench, engine_of

from zkelect.errors import Fenced, InvalidArgument, LeadershipLost, Misuse
from zkelect.stores.sql import SqlFence
from zkelect.stores.sql_table import fence_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.postgresql import PostgreSql
    from stores.bearers import FakeBearer

    MakeBearer = Callable[..., FakeBearer]


class Tables(DeclarativeBase):
    pass


class Job(Tables):
    __tablename__ = "job"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture
def leader(bearer: MakeBearer) -> FakeBearer:
    return bearer(5)


@pytest.fixture
def fence(bench: SqlBench, leader: FakeBearer) -> SqlFence:
    """A claimed fence over an empty table of jobs."""
    Tables.metadata.create_all(bench.engine)
    fence = bench.fence()
    fence.claim(leader)
    return fence


@pytest.fixture
def jobs(fence: SqlFence, engine: sa.Engine) -> Callable[[], list[int]]:
    def ask() -> list[int]:
        with Session(engine) as session:
            return list(session.scalars(sa.select(Job.id).order_by(Job.id)))

    return ask


def add(subject: sa.Connection | Session, number: int) -> None:
    subject.execute(sa.insert(Job).values(id=number))


def left_open(server: PostgreSql) -> int:
    query = "select count(*) from pg_stat_activity where state like 'idle in transaction%'"
    return int(server.ask(query))


# --- H53: the check and the write are in one transaction -----------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "commit",
        "COMMIT AND CHAIN",
        "/* a comment */ end",
        "-- a comment\nrollback",
        " ; abort",
        "begin",
        "start transaction",
        "prepare transaction 'x'",
    ],
)
def test_h53_transaction_control_as_sql_is_refused(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]], sql: str
) -> None:
    with fence.transaction(leader) as connection:
        add(connection, 1)
        with pytest.raises(InvalidArgument, match="leave the block"):
            connection.execute(text(sql))
        assert jobs() == []  # nothing was committed on the way
        add(connection, 2)
    assert jobs() == [1, 2]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_h53_what_hides_behind_another_statement_is_found_afterwards(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]], end: str
) -> None:
    def carry_on() -> None:
        with fence.transaction(leader) as connection:
            connection.exec_driver_sql(";".join(("insert into job values (1)", end)))
            add(connection, 2)

    with pytest.raises(Misuse, match="unguarded"):
        carry_on()
    assert 2 not in jobs()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_h53_after_its_end_a_block_can_write_no_more(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]], end: str, engine: sa.Engine
) -> None:
    def carry_on(on: Any) -> None:
        with fence.transaction(leader, on) as subject:
            add(subject, 1 if on is None else 11)
            getattr(subject, end)()
            add(subject, 2)

    with pytest.raises(sa.exc.InvalidRequestError, match="closed transaction"):
        carry_on(None)
    with (
        Session(engine) as session,
        pytest.raises(sa.exc.InvalidRequestError, match="closed transaction"),
    ):
        carry_on(session)
    assert jobs() == ([1, 11] if end == "commit" else [])


@pytest.mark.parametrize("end", ["commit", "nothing"])
def test_a_failed_statement_whose_error_was_caught_is_no_commit(
    fence: SqlFence,
    leader: FakeBearer,
    jobs: Callable[[], list[int]],
    postgresql: PostgreSql,
    end: str,
) -> None:
    """To COMMIT after an error the server answers ROLLBACK, which no driver tells."""

    def swallow() -> None:
        with fence.transaction(leader) as connection:
            add(connection, 1)
            with pytest.raises(sa.exc.IntegrityError):
                add(connection, 1)
            if end == "commit":
                connection.commit()

    with pytest.raises(Misuse, match="nothing was written"):
        swallow()
    assert (jobs(), left_open(postgresql)) == ([], 0)


def test_what_may_fail_goes_into_a_savepoint(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]]
) -> None:
    with fence.transaction(leader) as connection:
        add(connection, 1)
        with pytest.raises(sa.exc.IntegrityError), connection.begin_nested():
            add(connection, 1)
        add(connection, 2)
    assert jobs() == [1, 2]


def test_errors_of_the_user_s_own_sql_arrive_as_they_are(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]]
) -> None:
    for sql, kind in (
        ("insert into job values (null)", sa.exc.IntegrityError),
        ("select * from none", sa.exc.ProgrammingError),
        ("select 1 / 0", sa.exc.DataError),
    ):
        with pytest.raises(kind), fence.transaction(leader) as connection:
            connection.execute(text(sql))
    assert jobs() == []


@pytest.mark.parametrize("how", ["by the block", "by commit"])
def test_a_lease_that_ended_commits_nothing_and_leaves_nothing_open(
    fence: SqlFence,
    leader: FakeBearer,
    jobs: Callable[[], list[int]],
    postgresql: PostgreSql,
    how: str,
    engine: sa.Engine,
) -> None:
    """SQLAlchemy leaves the transaction open when its commit event raises; the fence does not."""

    def overstay() -> None:
        with fence.transaction(leader) as connection:
            add(connection, 1)
            leader.lease = 0.0
            if how == "by commit":
                connection.commit()

    with pytest.raises(LeadershipLost):
        overstay()
    assert left_open(postgresql) == 0
    with engine.begin() as connection:
        add(connection, 2)
    assert jobs() == [2]


# --- with what: the fence's connection, the user's, his session --------------------------------


def test_a_session_of_the_user_s_is_guarded(
    fence: SqlFence,
    leader: FakeBearer,
    bearer: MakeBearer,
    jobs: Callable[[], list[int]],
    engine: sa.Engine,
) -> None:
    sessions = make_sessionmaker(engine)
    with sessions() as session:
        with fence.transaction(leader, session) as same:
            assert same is session
            session.add(Job(id=1))
        with fence.transaction(leader, session):
            assert session.get(Job, 1) is not None
            session.add(Job(id=2))
        fence.claim(bearer(6))
        with pytest.raises(Fenced), fence.transaction(leader, session):
            session.add(Job(id=3))
        assert session.scalars(sa.select(Job.id).order_by(Job.id)).all() == [1, 2]
    assert jobs() == [1, 2]


def test_a_session_that_outlives_the_lease_writes_nothing(
    fence: SqlFence,
    leader: FakeBearer,
    jobs: Callable[[], list[int]],
    postgresql: PostgreSql,
    engine: sa.Engine,
) -> None:
    def overstay(session: Session) -> None:
        with fence.transaction(leader, session):
            session.add(Job(id=1))
            session.flush()
            leader.lease = 0.0

    with Session(engine) as session, pytest.raises(LeadershipLost):
        overstay(session)
    assert (jobs(), left_open(postgresql)) == ([], 0)


def test_a_session_on_another_engine_of_the_same_database_is_watched_too(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]], engine: sa.Engine
) -> None:
    def overstay(session: Session) -> None:
        with fence.transaction(leader, session):
            leader.lease = 0.0
            add(session, 1)
            session.commit()

    with (
        engine_of(engine.url) as another,
        Session(another) as session,
        pytest.raises(LeadershipLost),
    ):
        overstay(session)
    assert jobs() == []


def test_a_connection_of_the_user_s_is_guarded_and_free_afterwards(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]], engine: sa.Engine
) -> None:
    with engine.connect() as connection:
        for number in (1, 2):
            with fence.transaction(leader, connection) as same:
                assert same is connection
                add(connection, number)
        leader.lease = 0.0
        add(connection, 3)  # his own transaction again
        connection.commit()
    assert jobs() == [1, 2, 3]


def test_what_is_in_a_transaction_already_is_refused(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]], engine: sa.Engine
) -> None:
    """What was read in it may be older than the guard."""
    with engine.connect() as connection, Session(engine) as session:
        joined = Session(connection, join_transaction_mode="create_savepoint")
        for subject in (connection, session):
            subject.execute(text("select 1"))
        for used in (connection, session, joined):
            with pytest.raises(Misuse, match="already"), fence.transaction(leader, used):
                add(used, 1)
    assert jobs() == []


def test_what_is_no_session_is_refused(
    fence: SqlFence, leader: FakeBearer, engine: sa.Engine
) -> None:
    maker = make_sessionmaker(engine)
    wrongs: list[Any] = [maker, scoped_session(maker), engine, "session"]
    for wrong in wrongs:
        with pytest.raises(InvalidArgument, match="on="):
            fence.transaction(leader, wrong).__enter__()


def test_a_session_of_another_database_is_refused(fence: SqlFence, leader: FakeBearer) -> None:
    with (
        Session(sa.create_engine("sqlite://")) as elsewhere,
        pytest.raises(Misuse, match="sqlite://"),
        fence.transaction(leader, elsewhere),
    ):
        pass


# --- isolation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_each_isolation_level_claims_and_writes(
    bench: SqlBench, bearer: MakeBearer, isolation: str
) -> None:
    engine = bench.engine.execution_options(isolation_level=isolation)
    fence = SqlFence(engine, domain="d", timeout=60.0)
    for czxid in (5, 6):
        fence.claim(bearer(czxid))
        with fence.transaction(bearer(czxid)) as connection:
            level = connection.scalar(text("show transaction isolation level"))
            assert level == isolation.lower()
            bench.append(connection, bearer(czxid).token, isolation)
    assert entries(bench) == [isolation] * 2


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_first_claims_at_once_in_each_isolation_level(
    bench: SqlBench, bearer: MakeBearer, isolation: str
) -> None:
    """Each waits with a snapshot that knows neither the row nor, at first, the table."""
    engine = bench.engine.execution_options(isolation_level=isolation)
    start = threading.Barrier(6)

    def claim(domain: int, czxid: int) -> None:
        fence = SqlFence(engine, domain=f"d{domain}", timeout=60.0)
        start.wait()
        with suppress(Fenced):
            fence.claim(bearer(czxid))

    with ThreadPoolExecutor(6) as pool:
        for domain in range(10):
            for done in [pool.submit(claim, domain, czxid) for czxid in range(6)]:
                done.result()
            assert marked(SqlFence(engine, domain=f"d{domain}")) == bearer(5).token


class Contested:
    """A job that somebody else changes each time that it was read, so many times."""

    def __init__(self, engine: sa.Engine, times: int) -> None:
        self._engine, self.left, self.runs = engine, times, 0

    def work(self, connection: sa.Connection) -> int:
        self.runs += 1
        connection.execute(text("select * from job")).all()
        if self.left:
            self.left -= 1
            with self._engine.begin() as other:
                other.execute(text("update job set id = id + 1"))
        return connection.execute(text("update job set id = id + 100")).rowcount


@pytest.fixture
def serializable(fence: SqlFence, leader: FakeBearer, engine: sa.Engine) -> SqlFence:
    with fence.transaction(leader) as connection:
        add(connection, 1)
    return SqlFence(engine.execution_options(isolation_level="SERIALIZABLE"), domain="d")


def test_a_conflict_says_what_to_do(
    serializable: SqlFence,
    fence: SqlFence,
    leader: FakeBearer,
    jobs: Callable[[], list[int]],
    engine: sa.Engine,
) -> None:
    contested = Contested(engine, 1)
    with (
        pytest.raises(sa.exc.OperationalError, match="could not serialize") as caught,
        serializable.transaction(leader) as connection,
    ):
        contested.work(connection)
    assert "SqlFence.run" in caught.value.__notes__[0]
    assert jobs() == [2]


def test_run_runs_the_whole_again_after_a_conflict(
    serializable: SqlFence,
    fence: SqlFence,
    leader: FakeBearer,
    jobs: Callable[[], list[int]],
    engine: sa.Engine,
) -> None:
    contested = Contested(engine, 2)
    assert serializable.run(leader, contested.work) == 1
    assert (contested.runs, jobs()) == (3, [103])


def test_run_gives_up_after_its_attempts(
    serializable: SqlFence, fence: SqlFence, leader: FakeBearer, engine: sa.Engine
) -> None:
    contested = Contested(engine, 99)
    with pytest.raises(sa.exc.OperationalError, match="could not serialize"):
        serializable.run(leader, contested.work, attempts=3)
    assert contested.runs == 3


def test_run_does_not_repeat_other_errors(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]]
) -> None:
    runs = []

    def work(connection: sa.Connection) -> None:
        runs.append(connection)
        add(connection, 1)
        add(connection, 1)

    with pytest.raises(sa.exc.IntegrityError):
        fence.run(leader, work)
    assert (len(runs), jobs()) == (1, [])


def test_run_on_a_session(
    fence: SqlFence, leader: FakeBearer, jobs: Callable[[], list[int]], engine: sa.Engine
) -> None:
    with Session(engine) as session:
        fence.run(leader, lambda own: own.add(Job(id=1)), session)
    assert jobs() == [1]


# --- the table ---------------------------------------------------------------------------------


def test_alembic_makes_the_table_and_finds_no_difference(
    engine: sa.Engine, bearer: MakeBearer
) -> None:
    metadata = sa.MetaData()
    fence_table(metadata)
    with engine.begin() as connection:
        context = MigrationContext.configure(connection)
        script = produce_migrations(context, metadata)
        for operation in script.upgrade_ops.ops if script.upgrade_ops else ():
            Operations(context).invoke(operation)
    SqlFence(engine, domain="d").claim(bearer(5))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_alembic_finds_no_difference_in_the_table_that_the_fence_makes(
    engine: sa.Engine, bearer: MakeBearer
) -> None:
    metadata = sa.MetaData()
    fence_table(metadata)
    SqlFence(engine, domain="d").claim(bearer(5))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_guarded_insert_is_one_statement_more_and_a_claim_is_six(
    bench: SqlBench, bearer: MakeBearer
) -> None:
    sent: list[str] = []
    event.listen(bench.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)  # the first one makes the table
    sent.clear()
    fence.claim(leader)
    assert len(sent) == 6
    sent.clear()
    bench.write(fence, leader, "guarded")
    assert len(sent) == 2


# --- several fences on one engine --------------------------------------------------------------


def test_a_schema_is_another_store(bench: SqlBench, bearer: MakeBearer) -> None:
    odd = 'a :b "c" %'
    with bench.engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(odd))
    for schema, czxid in ((odd, 9), (None, 5)):
        fence = SqlFence(bench.engine, domain="d", schema=schema)
        fence.claim(bearer(czxid))
        bench.write(fence, bearer(czxid), str(schema))
    assert entries(bench) == [odd, "None"]


def test_a_search_path_that_changes_leads_to_no_other_mark(
    bench: SqlBench, bearer: MakeBearer
) -> None:
    """As with a schema for each tenant."""
    leader, fence = bearer(5), bench.fence()
    fence.claim(leader)
    with bench.engine.begin() as connection:
        connection.exec_driver_sql(
            "create schema tenant; create table tenant.zkelect_fence (x int)"
        )
    with bench.engine.connect() as connection:
        connection.exec_driver_sql("set search_path = tenant, public")
        connection.commit()
        with fence.transaction(leader, connection):
            bench.append(connection, leader.token, "public")
    assert entries(bench) == ["public"]
