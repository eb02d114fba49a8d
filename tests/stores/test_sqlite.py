"""What only the SQLite store has: a file, locks of processes, crashes, and users' SQL."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from stores.benches import marked

from zkelect.errors import (
    Fenced,
    FenceStateLost,
    InvalidArgument,
    Misuse,
    RequestFailed,
    StoreBusy,
    Unclaimed,
)
from zkelect.stores import SqliteFence
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stores.bearers import FakeBearer
    from stores.benches import SqliteBench
    from stores.conftest import Writer

    from zkelect.stores.sqlite import Transaction

    MakeToken = Callable[..., Token]
    MakeBearer = Callable[..., FakeBearer]
    StartWriter = Callable[..., Writer]


@pytest.fixture
def path(sqlite_bench: SqliteBench) -> Path:
    return sqlite_bench.path


@pytest.fixture
def leader(bearer: MakeBearer) -> FakeBearer:
    return bearer(5)


@pytest.fixture
def fence(path: Path, leader: FakeBearer) -> SqliteFence:
    """A claimed fence over a table t with a unique column a."""
    fence = SqliteFence(path, domain="d", timeout=60.0)
    fence.claim(leader)
    with fence.transaction(leader) as db:
        db.execute("create table t (a unique)")
    return fence


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def rows_of_t(path: Path) -> list[Any]:
    return [a for (a,) in query(path, "select a from t")]


def falls(tokens: list[Token]) -> list[int]:
    """Where a token is lower than one before it: writes of a stale leader."""
    return [i for i, token in enumerate(tokens) if token < max(tokens[: i + 1])]


# --- the file ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [":memory:", "", "file:jobs.db", "file::memory:?cache=shared", "a\0b", b"jobs.db", 5]
)
def test_what_names_no_plain_file_is_refused(name: Any) -> None:
    with pytest.raises(InvalidArgument, match="path"):
        SqliteFence(name, domain="d")


def test_a_refusal_of_memory_says_why() -> None:
    with pytest.raises(InvalidArgument, match="nobody else could see"):
        SqliteFence(":memory:", domain="d")


def test_bad_arguments_and_questions_create_nothing(tmp_path: Path, leader: FakeBearer) -> None:
    with pytest.raises(InvalidArgument):
        SqliteFence(tmp_path / "jobs.db", domain="")
    fence = SqliteFence(tmp_path / "jobs.db", domain="d")
    assert fence.status() is None
    with pytest.raises(Unclaimed), fence.transaction(leader):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_path_is_fixed_when_the_fence_is_made(
    tmp_path: Path, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    fence = SqliteFence("odd ?#% name.db", domain="d")
    monkeypatch.chdir(tmp_path)
    fence.claim(leader)
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["odd ?#% name.db"]


def test_a_file_that_vanished_is_a_lost_mark(
    path: Path, fence: SqliteFence, leader: FakeBearer
) -> None:
    path.unlink()
    with pytest.raises(FenceStateLost), fence.transaction(leader):
        pass
    assert not path.exists()


def test_two_domains_share_a_file(path: Path, fence: SqliteFence, bearer: MakeBearer) -> None:
    other = SqliteFence(path, domain="other")
    assert other.status() is None
    other.claim(bearer(9))
    assert query(path, "select domain, token from zkelect_fence order by domain") == [
        ("d", str(bearer(5).token)),
        ("other", str(bearer(9).token)),
    ]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_commit_is_durable_in_the_file_s_own_journal_mode(
    path: Path, leader: FakeBearer, mode: str
) -> None:
    query(path, f"pragma journal_mode = {mode}")
    fence = SqliteFence(path, domain="d")
    fence.claim(leader)
    with fence.transaction(leader) as db:
        assert db.execute("pragma synchronous").fetchall() == [(3,)]  # EXTRA
    assert query(path, "pragma journal_mode") == [(mode,)]


# --- what SQLite could not do --------------------------------------------------------------


def refusal_of_sqlite(fence: SqliteFence, leader: FakeBearer) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        fence.claim(leader)
    assert isinstance(caught.value.__cause__, sqlite3.Error)
    assert leader.ends == []
    return caught.value


def test_a_file_that_is_no_database(tmp_path: Path, leader: FakeBearer) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database " * 100)
    told = str(refusal_of_sqlite(SqliteFence(file, domain="d"), leader))
    assert str(file) in told
    assert "not a database" in told


def test_a_folder_that_is_missing(tmp_path: Path, leader: FakeBearer) -> None:
    fence = SqliteFence(tmp_path / "none" / "jobs.db", domain="d")
    assert "unable to open" in str(refusal_of_sqlite(fence, leader))


def test_a_table_of_that_name_that_is_not_ours(path: Path, leader: FakeBearer) -> None:
    query(path, "create table zkelect_fence (x)")
    assert "no such column" in str(refusal_of_sqlite(SqliteFence(path, domain="d"), leader))


def test_a_mark_that_is_no_token(path: Path, fence: SqliteFence) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("update zkelect_fence set token = ?", ("x" * 59,))
    with pytest.raises(RequestFailed, match="reading the mark"):
        fence.status()


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Let SQLite fail with this error at the statements that begin so."""
    connect = sqlite3.connect

    def arrange(name: str, at: str) -> None:
        error = sqlite3.OperationalError("made up")
        error.sqlite_errorname, error.sqlite_errorcode = name, getattr(sqlite3, name)

        class Failing(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                if sql.startswith(at):
                    raise error
                return super().execute(sql, *parameters)

        monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Failing))

    return arrange


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR_FSYNC"])
@pytest.mark.parametrize("at", ["BEGIN", "INSERT OR REPLACE", "COMMIT"])
def test_a_failure_at_any_step_of_a_claim_is_told_and_leaves_the_mark(
    fence: SqliteFence,
    bearer: MakeBearer,
    fail: Callable[[str, str], None],
    name: str,
    at: str,
) -> None:
    fail(name, at)
    refusal_of_sqlite(fence, bearer(6))
    fail(name, "nothing more")
    assert marked(fence) == bearer(5).token
    fence.claim(bearer(6))


def test_an_extended_code_of_busy_is_busy(
    path: Path, leader: FakeBearer, fail: Callable[[str, str], None]
) -> None:
    fail("SQLITE_BUSY_RECOVERY", "BEGIN")
    with pytest.raises(StoreBusy):
        SqliteFence(path, domain="d", timeout=0.01).claim(leader)


def test_a_failure_of_the_file_in_the_block_is_told(
    path: Path, fence: SqliteFence, leader: FakeBearer, fail: Callable[[str, str], None]
) -> None:
    fail("SQLITE_IOERR_WRITE", "insert into t")
    with pytest.raises(RequestFailed, match="made up"), fence.transaction(leader) as db:
        db.execute("insert into t values (1)")
    assert rows_of_t(path) == []


def fill_the_disk(db: Transaction) -> None:
    db.execute("pragma max_page_count = 10")
    db.execute("insert into t values (zeroblob(1000000))")


def test_a_full_disk_in_the_block_is_told_and_nothing_written(
    path: Path, fence: SqliteFence, leader: FakeBearer
) -> None:
    with pytest.raises(RequestFailed, match="disk is full"), fence.transaction(leader) as db:
        fill_the_disk(db)
    assert rows_of_t(path) == []


# --- H53: the user's SQL cannot leave the guard ----------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "begin",
        "commit",
        "COMMIT",
        "/* a comment */ end transaction",
        "-- a comment\nrollback",
        "savepoint s",
        "attach ':memory:' as other",
        "pragma journal_mode = off",
        "PRAGMA main.Journal_Mode = memory",
        "pragma writable_schema = on",
        "update zkelect_fence set token = token",
        "delete from ZKELECT_FENCE",
        "insert or replace into main.zkelect_fence values ('d', 'x')",
        "drop table zkelect_fence",
        "alter table zkelect_fence rename to gone",
        "create trigger s after insert on zkelect_fence begin select 1; end",
    ],
)
def test_h53_what_would_leave_the_guard_is_refused(
    path: Path, fence: SqliteFence, leader: FakeBearer, sql: str
) -> None:
    with fence.transaction(leader) as db:
        db.execute("insert into t values ('before')")
        for run in (lambda: db.execute(sql), lambda: db.executemany(sql, [()])):
            with pytest.raises(InvalidArgument) as caught:
                run()
            assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)
        db.execute("insert into t values ('after')")
        assert rows_of_t(path) == []  # nothing was committed on the way
    assert rows_of_t(path) == ["before", "after"]
    assert marked(fence) == leader.token


def test_h53_a_claim_that_comes_before_the_lock_is_seen(
    path: Path,
    fence: SqliteFence,
    leader: FakeBearer,
    bearer: MakeBearer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Just before the lock is taken, a successor claims: the guard reads after that."""

    class Overtaken(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                monkeypatch.undo()
                SqliteFence(path, domain="d").claim(bearer(6))
            return super().execute(sql, *parameters)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Overtaken))
    with pytest.raises(Fenced), fence.transaction(leader) as db:
        db.execute("insert into t values (1)")
    assert rows_of_t(path) == []


def test_h53_a_trigger_cannot_change_the_mark(
    path: Path, fence: SqliteFence, leader: FakeBearer
) -> None:
    query(path, "create trigger s after insert on t begin delete from zkelect_fence; end")
    with fence.transaction(leader) as db, pytest.raises(InvalidArgument):
        db.execute("insert into t values (1)")
    assert marked(fence) == leader.token


def collide(db: Transaction) -> None:
    """End the transaction as an SQL statement can, without any COMMIT or ROLLBACK."""
    db.execute("insert into t values (1)")
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("insert or rollback into t values (1)")


def test_h53_after_a_hidden_rollback_nothing_is_written(
    path: Path, fence: SqliteFence, leader: FakeBearer
) -> None:
    def carry_on(db: Transaction) -> None:
        collide(db)
        db.execute("insert into t values (2)")

    with pytest.raises(Misuse, match="rolled"), fence.transaction(leader) as db:
        carry_on(db)
    assert rows_of_t(path) == []


def test_h53_a_hidden_rollback_is_no_commit(
    path: Path, fence: SqliteFence, leader: FakeBearer
) -> None:
    with pytest.raises(Misuse, match="nothing of it was written"), fence.transaction(leader) as db:
        collide(db)
    assert rows_of_t(path) == []


def test_h53_parameters_that_run_sql_cannot_split_an_executemany(
    path: Path, fence: SqliteFence, leader: FakeBearer
) -> None:
    def treacherous(db: Transaction) -> Any:
        yield (2,)
        collide(db)
        yield (3,)

    with pytest.raises(Misuse), fence.transaction(leader) as db:
        db.executemany("insert into t values (?)", treacherous(db))
    assert rows_of_t(path) == []


def test_h53_after_its_block_a_transaction_is_dead(
    path: Path, fence: SqliteFence, leader: FakeBearer
) -> None:
    with fence.transaction(leader) as db:
        pass
    with pytest.raises(Misuse, match="its block was left"):
        db.execute("insert into t values (1)")
    assert rows_of_t(path) == []


def test_errors_of_the_user_s_own_sql_arrive_as_they_are(
    fence: SqliteFence, leader: FakeBearer
) -> None:
    with fence.transaction(leader) as db:
        db.execute("insert into t values (1)")
        with pytest.raises(sqlite3.IntegrityError):
            db.execute("insert into t values (1)")
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            db.execute("select * from none")
        with pytest.raises(sqlite3.ProgrammingError):
            db.execute("select ?")


def test_rows_are_read_as_from_a_cursor(fence: SqliteFence, leader: FakeBearer) -> None:
    with fence.transaction(leader) as db:
        inserted = db.executemany("insert into t values (:a)", [{"a": a} for a in range(4)])
        assert inserted.rowcount == 4
        assert db.execute("insert into t values (?) returning a", (4,)).fetchall() == [(4,)]
        found = db.execute("select a, a * 2 as twice from t order by a")
        assert found.columns == ("a", "twice")
        assert found.fetchone() == (0, 0)
        assert [twice for _, twice in found] == [2, 4, 6, 8]
        assert found.fetchone() is None
        assert db.execute("update t set a = a + 10").rowcount == 5
        assert db.execute("insert into t values ('last')").lastrowid == 6
        assert db.execute("pragma table_info(t)").fetchall()
        assert db.execute("select token from zkelect_fence").fetchone() == (str(leader.token),)


# --- H52: who is in the way ------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_h52_a_busy_store_names_the_process_that_holds_it(
    path: Path, token: MakeToken, bearer: MakeBearer, writer: StartWriter, mode: str
) -> None:
    query(path, f"pragma journal_mode = {mode}")
    holding = writer(token(5))
    assert holding.does("hold entry") == "holding"
    with pytest.raises(StoreBusy, match=rf"process {holding.pid}\b") as caught:
        SqliteFence(path, domain="d", timeout=0.01).claim(bearer(6))
    assert caught.value.token == bearer(6).token
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert holding.does("go on") == "released"
    assert query(path, "select entry from log") == [("entry",)]


def test_h52_this_process_is_named_as_such(
    path: Path, fence: SqliteFence, leader: FakeBearer, bearer: MakeBearer
) -> None:
    impatient = SqliteFence(path, domain="d", timeout=0.01)
    with (
        fence.transaction(leader),
        pytest.raises(StoreBusy, match=rf"process {os.getpid()} \(this one\)"),
    ):
        impatient.claim(bearer(6))


def test_h52_a_reader_that_keeps_a_commit_waiting_is_named(
    path: Path, token: MakeToken, leader: FakeBearer, fence: SqliteFence, writer: StartWriter
) -> None:
    """In rollback mode; the wait is no longer than the lease, here shortened at the last moment."""
    reading = writer(token(1))
    with fence.transaction(leader) as db:
        db.execute("create table log (entry)")
        db.executemany("insert into log values (?)", [("x",)] * 2)
    assert reading.does("read") == "reading"

    def almost_overstay(db: Transaction) -> None:
        db.execute("insert into t values (1)")
        leader.lease = 0.01

    told = rf"commit waited 0\.01 s for process {reading.pid}\b"
    with pytest.raises(StoreBusy, match=told), fence.transaction(leader) as db:
        almost_overstay(db)
    assert reading.does("go on") == "released"
    assert rows_of_t(path) == []


def test_h52_a_dead_holder_is_in_nobody_s_way(
    path: Path, token: MakeToken, bearer: MakeBearer, writer: StartWriter
) -> None:
    holding = writer(token(5))
    assert holding.does("hold entry") == "holding"
    holding.kill()
    fence = SqliteFence(path, domain="d", timeout=60.0)
    fence.claim(bearer(6))
    assert query(path, "select name from sqlite_master") == [("zkelect_fence",)]


def refusal_of_busy(path: Path, leader: FakeBearer) -> str:
    with pytest.raises(StoreBusy) as caught:
        SqliteFence(path, domain="d", timeout=0.01).claim(leader)
    return str(caught.value)


LOCKS = """\
1: POSIX  ADVISORY  WRITE 11 {file} 1073741825 1073741825
1: -> POSIX  ADVISORY  WRITE 12 {file} 1073741825 1073741825
2: POSIX  ADVISORY  READ 13 {file} 1073741826 1073742335
3: POSIX  ADVISORY  WRITE 14 {file} 0 1073741823
4: POSIX  ADVISORY  WRITE 15 {file} 1073742336 1073742336
5: FLOCK  ADVISORY  WRITE 16 00:00:1 0 EOF
6: OFDLCK ADVISORY  WRITE -1 {file} 0 EOF
7: POSIX  ADVISORY  WRITE 18 {file} 0 EOF
"""


def test_of_all_locks_only_those_in_the_way_count(
    path: Path,
    fence: SqliteFence,
    leader: FakeBearer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status = path.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    locks = LOCKS.format(file=f"{device}:{status.st_ino}")
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: locks)
    with fence.transaction(leader):
        assert "for process 11, 18." in refusal_of_busy(path, leader)


def test_where_the_system_tells_nothing_the_refusal_says_so(
    path: Path, fence: SqliteFence, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_such_file(*_: Any, **__: Any) -> str:
        raise FileNotFoundError(errno.ENOENT, "no /proc here")

    monkeypatch.setattr("pathlib.Path.read_text", no_such_file)
    with fence.transaction(leader):
        assert "for a process that could not be told" in refusal_of_busy(path, leader)


# --- processes: order, crashes, and the control that must fail -------------------------------


def take_over(old: Writer, new: Writer, entries: int = 20) -> None:
    """Let the new leader claim and write while the old one writes as fast as it can."""
    assert old.does("claim") == "claimed"
    old.order("hammer")
    assert [old.answer() for _ in range(entries)] == ["appended"] * entries
    assert new.does("claim") == "claimed"
    assert [new.does("append") for _ in range(entries)] == ["appended"] * entries


def tokens_in(bench: SqliteBench) -> list[Token]:
    return [token for token, _ in bench.log()]


def test_h50_of_two_processes_that_hammer_the_old_one_never_writes_after_the_claim(
    sqlite_bench: SqliteBench, token: MakeToken, writer: StartWriter
) -> None:
    old, new = writer(token(5)), writer(token(6))
    take_over(old, new)
    assert next(answer for answer in iter(old.answer, "") if answer != "appended") == "Fenced"
    tokens = tokens_in(sqlite_bench)
    assert falls(tokens) == []
    assert tokens.count(token(6)) == 20


def test_control_without_the_guard_the_same_check_finds_stale_writes(
    sqlite_bench: SqliteBench, token: MakeToken, writer: StartWriter
) -> None:
    old, new = writer(token(5), "--unguarded"), writer(token(6))
    take_over(old, new)
    done = len(sqlite_bench.log())
    while len(sqlite_bench.log()) == done:
        assert old.answer() == "appended"
    old.kill()
    assert falls(tokens_in(sqlite_bench))


def assert_opens_clean(bench: SqliteBench) -> None:
    """Whole, and the mark never behind the data."""
    mark = marked(bench.fence())
    assert query(bench.path, "pragma integrity_check") == [("ok",)]
    assert all(mark is not None and token <= mark for token in tokens_in(bench))


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_writer_killed_at_each_step_leaves_the_mark_never_behind_the_data(
    sqlite_bench: SqliteBench, token: MakeToken, writer: StartWriter, mode: str
) -> None:
    query(sqlite_bench.path, f"pragma journal_mode = {mode}")
    steps, answers, written = 0, ["", ""], 0
    while answers != ["claimed", "appended"]:
        mortal = writer(token(steps), "--die-at", str(steps))
        answers = [mortal.does("claim"), mortal.does("append")]
        mortal.kill()
        assert_opens_clean(sqlite_bench)
        sqlite_bench.fence().claim(token(steps))  # the next one finds no lock
        steps += 1
        written += tokens_in(sqlite_bench).count(token(steps - 1))
    assert steps > 10
    assert written == 2  # the last one, and the one that died between its commit and its answer


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("lines", range(6))
def test_a_writer_killed_anywhere_loses_no_acknowledged_write(
    sqlite_bench: SqliteBench, token: MakeToken, writer: StartWriter, mode: str, lines: int
) -> None:
    query(sqlite_bench.path, f"pragma journal_mode = {mode}")
    hammering = writer(token(5))
    assert hammering.does("claim") == "claimed"
    hammering.order("hammer")
    acknowledged = [hammering.answer() for _ in range(10 + lines)]
    hammering.kill()
    acknowledged += iter(hammering.answer, "")
    assert_opens_clean(sqlite_bench)
    assert len(sqlite_bench.log()) - len(acknowledged) in (0, 1)
