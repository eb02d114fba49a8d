"""The embedded default: a SQLite file, guarded with the standard library alone."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.errors import InvalidArgument, Misuse, RequestFailed, StoreBusy
from zkelect.stores.fence import Claimant, Gate, patience, present, valid_timeout
from zkelect.stores.mark import Mark
from zkelect.stores.sqlite_locks import holders
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

__all__ = ["Rows", "SqliteFence", "Transaction"]

_TABLE: Final = "zkelect_fence"
# No STRICT: SQLite before 3.37 could not open the file any more. The check does the same.
_CREATE: Final = """
    CREATE TABLE IF NOT EXISTS main.zkelect_fence (
        domain TEXT NOT NULL PRIMARY KEY,
        token TEXT NOT NULL CHECK (typeof(token) = 'text' AND length(token) = 59),
        election TEXT NOT NULL,
        holder TEXT NOT NULL,
        origin TEXT NOT NULL
    ) WITHOUT ROWID"""
_EXISTS: Final = "SELECT 1 FROM main.sqlite_master WHERE name = 'zkelect_fence'"
_READ: Final = "SELECT token, election, holder, origin FROM main.zkelect_fence WHERE domain = ?"
_RAISE: Final = "INSERT OR REPLACE INTO main.zkelect_fence VALUES (?, ?, ?, ?, ?)"

_PAUSE: Final = 0.001  # seconds
_READING: Final = {sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT}
_CONTROL: Final = {
    sqlite3.SQLITE_TRANSACTION,
    sqlite3.SQLITE_SAVEPOINT,
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_DETACH,
}
# Without its journal nothing could be rolled back; a writable schema hides the fence's table.
_PRAGMAS: Final = {"journal_mode", "writable_schema"}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_FILE_ERRORS: Final = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
}


class SqliteFence:
    """A SQLite file in which only the present leader writes.

    Promises: the mark is checked inside the transaction that writes (BEGIN IMMEDIATE), so a
    refused leader writes nothing, and no write of an older token follows a claim. Mark and
    data are committed together and durable: after a kill or a power cut the file opens with
    both or with neither. A transaction that outlives its lease is rolled back. A file put
    back from an older copy is told, FenceStateLost, by each fence that has seen a higher mark.

    Does not promise: to interrupt a writer that hangs in its transaction (the claim raises
    StoreBusy and names its process: end it); to guard writes that go round this class; that
    a fence made after a restore knows of it; anything on a network file system, where
    SQLite's locks do not hold.

    Isolation: serializable; one writer at a time for the whole file, whatever the domain. Who
    waits for the write lock asks for it every millisecond; there is no queue. Any thread and
    any process may use it, also after a fork: every call opens its own connection.

    Cost: no round trip; a claim and a transaction are one commit each, a few fsyncs.

    The file keeps its own journal mode; synchronous=EXTRA makes a commit durable in each. FULL
    is enough for WAL only: with a rollback journal it leaves the folder unsynced, and after a
    power cut the journal could come back and undo a commit (SQLite, "PRAGMA synchronous"). The
    fence does not switch to WAL by itself, since that outlives it and since SQLite before 3.51.3
    can then corrupt a file on which several processes write (SQLite, "The WAL-reset bug"). In
    rollback mode a commit waits for readers, within the same timeout.

    :param path: the file, made at the first claim; its folder must exist.
    :param domain: which election guards it: 1 to 255 printable characters. Several domains may
        share a file, each with its own mark.
    :param timeout: seconds to wait for the file, more than 0, or the lease left if that is less;
        at the begin, and again at a commit.
    :raises InvalidArgument: an argument is outside its range; nothing was opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, domain: str, timeout: float = 5.0) -> None:
        self._path = _valid_path(path)
        self._timeout = valid_timeout(timeout)
        self._gate = Gate(store=f"sqlite:{self._path}", domain=domain, lock=threading.Lock())

    def claim(self, claimant: Claimant) -> None:
        """Raise the mark to the claimant's token: once per term, before its first read.

        Idempotent: a claim of unknown outcome is made again with the same token.

        :raises Lost: the lease was over or suspended, before or meanwhile; nothing was written.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no, or StoreBusy.
        :raises RequestFailed: SQLite could not; its error is the ``__cause__``.
        """
        with self._alone(claimant) as connection:
            with self._told("claim"):
                connection.execute(_CREATE)
                mark = self._mark(connection)
            mark = self._gate.claim(mark, claimant)
            with self._told("claim"):
                connection.execute(_RAISE, _row(self._gate.domain, mark))
        self._gate.confirm(mark)

    @contextmanager
    def transaction(self, claimant: Claimant) -> Iterator[Transaction]:
        """Lend a guarded transaction: committed when the block ends well, else rolled back.

        With a bare token, its first transaction makes the claim.

        :raises Lost: the lease was over or suspended, before or at the end; nothing was written.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no, or StoreBusy.
        :raises RequestFailed: SQLite could not; its error is the ``__cause__``.
        """
        if isinstance(claimant, Token) and claimant != self._gate.floor:
            self.claim(claimant)
        if not self._path.exists():  # to open it would create it
            self._gate.guard(None, claimant)
        with self._alone(claimant) as connection:
            with self._told("transaction"):
                mark = self._mark(connection)
            self._gate.guard(mark, claimant)
            connection.set_authorizer(_authorize)
            yield Transaction(connection, self._path)
            _live(connection, self._path).set_authorizer(None)

    def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed; creates nothing.

        :raises StoreBusy: a commit took longer than the timeout.
        :raises RequestFailed: SQLite could not; its error is the ``__cause__``.
        """
        if not self._path.exists():
            return None
        connection = self._open(self._timeout)
        with closing(connection), self._told("status", seconds=self._timeout):
            return self._mark(connection)

    @contextmanager
    def _alone(self, claimant: Claimant) -> Iterator[sqlite3.Connection]:
        """Be the file's only writer for the block; without a COMMIT, closing rolls back."""
        token = present(claimant)
        seconds = patience(claimant, self._timeout)
        with closing(self._open(0)) as connection:
            with self._told("begin", token, seconds):
                _begin(connection, seconds)
            yield connection
            present(claimant)
            seconds = patience(claimant, self._timeout)
            with self._told("commit", token, seconds):
                connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
                connection.execute("COMMIT")

    def _open(self, seconds: float) -> sqlite3.Connection:
        with self._told("open"):
            return sqlite3.connect(self._path, timeout=seconds, isolation_level=None)

    def _mark(self, connection: sqlite3.Connection) -> Mark | None:
        if connection.execute(_EXISTS).fetchone() is None:
            return None
        row = connection.execute(_READ, (self._gate.domain,)).fetchone()
        try:
            return None if row is None else _mark_of(*row)
        except InvalidArgument as error:
            raise RequestFailed(str(self._path), "reading the mark", str(error)) from error

    @contextmanager
    def _told(self, request: str, token: Token | None = None, seconds: float = 0) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _code(error) not in _BUSY:
                raise RequestFailed(str(self._path), request, str(error)) from error
            raise StoreBusy(
                store=self._gate.store,
                domain=self._gate.domain,
                token=token,
                detail=f"{request} waited {seconds:g} s for {holders(self._path, request)}",
            ) from error


class Transaction:
    """An open guarded transaction: run SQL in it; only leaving its block ends it.

    Errors of the SQL itself (a constraint, a missing table) arrive as SQLite's own. What would
    let a write slip past the guard is refused: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, ATTACH, a
    change of journal mode or of the fence's table. It belongs to the thread that opened it.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run one statement, with its parameters, and return its rows.

        :raises Misuse: the transaction is over.
        :raises InvalidArgument: the statement is one that the guard refuses.
        """
        with _translated(self._path, sql):
            cursor = _live(self._connection, self._path).execute(sql, parameters)
            return Rows(cursor, self._path, sql)

    def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> Rows:
        """Run one statement for each of the parameters; raises as :meth:`execute` does."""
        every = list(parameters)  # before: making them must not run SQL between two of them
        with _translated(self._path, sql):
            cursor = _live(self._connection, self._path).executemany(sql, every)
            return Rows(cursor, self._path, sql)


class Rows:
    """What a statement gave: its rows, once, in order; to be read inside the block."""

    def __init__(self, cursor: sqlite3.Cursor, path: Path, sql: str) -> None:
        self._cursor, self._path, self._sql = cursor, path, sql

    @property
    def rowcount(self) -> int:
        """How many rows were changed; -1 for a statement that changes none."""
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        """The rowid of the last insert."""
        return self._cursor.lastrowid

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column[0] for column in self._cursor.description or ())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None after the last one."""
        with _translated(self._path, self._sql):
            row: tuple[Any, ...] | None = self._cursor.fetchone()
            return row

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        return list(self)


def _row(domain: str, mark: Mark) -> tuple[str, ...]:
    return domain, str(mark.token), mark.election, mark.holder, mark.origin


def _mark_of(token: str, election: str, holder: str, origin: str) -> Mark:
    return Mark(token=Token.parse(token), election=election, holder=holder, origin=origin)


def _begin(connection: sqlite3.Connection, seconds: float) -> None:
    """Take the write lock, asking for it every millisecond.

    SQLite's own waiting soon asks only ten times a second. That is too seldom to find the
    gap between the transactions of a busy writer: it kept a claim out for ten seconds.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Let the user's SQL do all but end the transaction, or touch how it is guarded."""
    settings = action == sqlite3.SQLITE_PRAGMA and str(first).lower() in _PRAGMAS
    table = action not in _READING and _TABLE in (first, second)
    return sqlite3.SQLITE_DENY if settings or table or action in _CONTROL else sqlite3.SQLITE_OK


@contextmanager
def _translated(path: Path, sql: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if _code(error) == sqlite3.SQLITE_AUTH:
            expected = "no transaction control, ATTACH, journal mode or fence table in here"
            raise InvalidArgument("sql", sql, expected) from error
        if _code(error) in _FILE_ERRORS:
            raise RequestFailed(str(path), sql, str(error)) from error
        raise


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code; errors that the Python module raises have none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF


def _live(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Return the connection if its transaction is open.

    INSERT OR ROLLBACK, a trigger or a full disk ends a transaction without a word, and the
    next statement would be committed by itself, unguarded.
    """
    with suppress(sqlite3.ProgrammingError):  # closed: its block was left
        if connection.in_transaction:
            return connection
    raise Misuse(
        f"{path}: this guarded transaction is over: its block was left, or an error in it has "
        "rolled it back and nothing of it was written. Begin a new one"
    )


def _valid_path(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidArgument("path", path, "the name of a file")
    if name.startswith((":memory:", "file:")):
        raise InvalidArgument(
            "path", path, "the plain name of a file; a mark in memory, nobody else could see"
        )
    return Path(name).absolute()
