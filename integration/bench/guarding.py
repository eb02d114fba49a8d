"""What the guard costs: a transaction of one INSERT, guarded, beside the same one without."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import sqlalchemy as sa
from servers.mariadb import MariaDb
from servers.postgresql import PostgreSql

from bench.samples import Row, Samples
from zkelect.stores.sql import SqlFence
from zkelect.stores.sqlite import SqliteFence
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["rows"]

_TRANSACTIONS: Final = 200
"""Of each kind in one sample, in turns."""
_WRITERS: Final = 8
_SQL: Final = "insert into work (entry) values ('x')"
_INSERT: Final = sa.text(_SQL)
_LEAST: Final = sa.text("select 1")
_WORK: Final = sa.Table("work", sa.MetaData(), sa.Column("entry", sa.String(20)))
_EXTRA: Final = "PRAGMA synchronous = EXTRA"


@attrs.frozen
class _Leader:
    """A leadership that lasts: the guard asks it what it asks a real one."""

    token: Token
    path: str = "/bench"
    name: str = "bench"
    zxid: int = 5

    def check(self) -> Token:
        return self.token

    def remaining(self) -> float:
        return 60.0

    def end(self, reason: str) -> None:
        raise AssertionError(f"ended: {reason}")


_LEADER: Final = _Leader(Token.issue(lineage="0" * 16, generation=0, czxid=5, session_id=7))


def rows(rounds: int) -> Iterator[Row]:
    """Measure each database in turns; every commit is forced to the disk, on both sides."""
    with tempfile.TemporaryDirectory(prefix="zkelect-bench-") as folder:
        yield _sqlite_row(Path(folder) / "plain.db", rounds)
        with _engine(f"sqlite:///{folder}/alchemy.db") as engine:
            sa.event.listen(engine, "connect", lambda raw, _: raw.execute(_EXTRA))
            yield _sql_row(engine, "SQLite, SQLAlchemy", rounds, target="ratio 1.25")
    with PostgreSql(durable=True) as server, _engine(server.url(), pool_size=_WRITERS) as engine:
        yield _sql_row(engine, "PostgreSQL, psycopg", rounds, target="ratio 1.25")
        yield _yardstick_row(engine, rounds)
        yield _parallel_row(engine, rounds)
    with MariaDb(durable=True) as mariadb, _engine(mariadb.url()) as engine:
        yield _sql_row(engine, "MariaDB, PyMySQL", rounds, target="")


@contextmanager
def _engine(url: str, **options: Any) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url, **options)
    try:
        yield engine
    finally:
        engine.dispose()


# --- one writer -------------------------------------------------------------------------------


def _sqlite_row(path: Path, rounds: int) -> Row:
    """Open the file for each transaction on both sides, as the fence does."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table work (entry)")
    fence = SqliteFence(path, domain="bench")
    fence.claim(_LEADER)

    def guarded() -> None:
        with fence.transaction(_LEADER) as db:
            db.execute(_SQL)

    def plain() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(_EXTRA)
            db.execute("BEGIN IMMEDIATE")
            db.execute(_SQL)
            db.execute("COMMIT")

    ours, beside = _alternate(guarded, plain, rounds)
    return _row("SQLite, standard library", ours, beside, target="ratio 1.25")


def _sql_row(engine: sa.Engine, what: str, rounds: int, *, target: str) -> Row:
    guarded, plain = _kinds(engine)
    ours, beside = _alternate(guarded, plain, rounds)
    counts = _statements(engine, guarded), _statements(engine, plain)
    note = f"statements beside BEGIN and COMMIT: {counts[0]} guarded, {counts[1]} plain"
    return _row(what, ours, beside, target=target, note=note)


def _yardstick_row(engine: sa.Engine, rounds: int) -> Row:
    """Measure what the least statement there is costs in the guard's place."""
    _, plain = _kinds(engine)

    def with_another() -> None:
        with engine.begin() as connection:
            connection.execute(_LEAST)
            connection.execute(_INSERT)

    ours, beside = _alternate(with_another, plain, rounds)
    return Row(
        figure="SELECT 1 and INSERT, PostgreSQL, psycopg",
        ours=ours,
        unit="ms",
        beside=beside,
        beside_what="plain",
    )


def _kinds(engine: sa.Engine) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return a guarded transaction and a plain one."""
    _WORK.create(engine, checkfirst=True)
    fence = SqlFence(engine, domain="bench")
    fence.claim(_LEADER)

    def guarded() -> None:
        with fence.transaction(_LEADER) as connection:
            connection.execute(_INSERT)

    def plain() -> None:
        with engine.begin() as connection:
            connection.execute(_INSERT)

    return guarded, plain


def _alternate(
    guarded: Callable[[], None], plain: Callable[[], None], rounds: int
) -> tuple[Samples, Samples]:
    """Return milliseconds for each transaction, by round."""
    for _ in range(_TRANSACTIONS // 4):
        _time(guarded), _time(plain)
    taken = [[(_time(guarded), _time(plain)) for _ in range(_TRANSACTIONS)] for _ in range(rounds)]
    means = [[sum(times) / len(times) for times in zip(*each, strict=True)] for each in taken]
    ours, beside = zip(*means, strict=True)
    return Samples(tuple(ours)), Samples(tuple(beside))


def _time(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


def _statements(engine: sa.Engine, work: Callable[[], None]) -> int:
    told: list[str] = []

    def listen(_: Any, __: Any, statement: str, *___: Any) -> None:
        if not statement.startswith("BEGIN"):  # the plain one's is the driver's own
            told.append(statement)

    sa.event.listen(engine, "before_cursor_execute", listen)
    work()
    sa.event.remove(engine, "before_cursor_execute", listen)
    return len(told)


def _row(what: str, ours: Samples, beside: Samples, *, target: str, note: str = "") -> Row:
    return Row(
        figure=f"guarded INSERT, {what}",
        ours=ours,
        unit="ms",
        beside=beside,
        beside_what="plain",
        target=target,
        note=note,
    )


# --- eight writers of one leader ---------------------------------------------------------------


def _parallel_row(engine: sa.Engine, rounds: int) -> Row:
    guarded, plain = _kinds(engine)
    taken = [(_in_parallel(guarded), _in_parallel(plain)) for _ in range(rounds)]
    ours, beside = zip(*taken, strict=True)
    return Row(
        figure=f"guarded INSERTs by {_WRITERS} writers, PostgreSQL, psycopg",
        ours=Samples(ours),
        unit="/s",
        beside=Samples(beside),
        beside_what="plain",
    )


def _in_parallel(work: Callable[[], None]) -> float:
    """Return transactions per second of all writers together."""

    def write() -> None:
        start.wait()
        for _ in range(_TRANSACTIONS):
            work()

    start = threading.Barrier(_WRITERS + 1)
    with ExitStack() as stack:
        for _ in range(_WRITERS):
            thread = threading.Thread(target=write)
            thread.start()
            stack.callback(thread.join)
        start.wait()
        begun = time.perf_counter()
    return _WRITERS * _TRANSACTIONS / (time.perf_counter() - begun)
