"""The SQL fence on SQLite: which statements it runs, and what SQLite's errors mean.

Queue and check in one: BEGIN IMMEDIATE makes a transaction the only writer of the file until
it ends, so that what it reads then is the latest mark (SQLite, "Transaction").
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

from zkelect.errors import InvalidArgument
from zkelect.stores.sql_backend import Fault, Limits, Phase, Sight, Unfit
from zkelect.stores.sql_table import mark_of, row_of
from zkelect.stores.sqlite_locks import holders

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

    from zkelect.stores.mark import Mark

__all__ = ["SqliteBackend"]

# SQLite, "Result and Error Codes".
_FAULTS: Final = {
    5: Fault.BUSY,  # SQLITE_BUSY
    6: Fault.BUSY,  # SQLITE_LOCKED
    8: Fault.UNFIT,  # SQLITE_READONLY
}
_CONTROL: Final = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(?:BEGIN|COMMIT|END|ATTACH|DETACH|ROLLBACK(?!\s+(?:TRANSACTION\s+)?TO\b))\b",
    re.IGNORECASE | re.DOTALL,
)
_PAUSE: Final = 0.001  # seconds
# What is remembered of a connection of the pool.
_OWN: Final = "zkelect_busy_timeout"
_LIMITED: Final = "zkelect_limited"


class SqliteBackend:
    """SQLite, for one domain. The table is that of :class:`SqliteFence`: both may share a file.

    :param table: the fence's table, with its schema. :param name: it, quoted for SQL.
    """

    def __init__(self, *, domain: str, table: Table, name: str) -> None:
        self._domain, self._table, self._name = domain, table, name
        columns = table.c
        self._where = columns.domain == domain
        self._read = select(columns.token, columns.election, columns.holder, columns.origin).where(
            self._where
        )
        self._path = Path()

    def status(self, connection: Connection, limits: Limits) -> Mark | None:
        """Read the mark."""
        _limit(connection, limits.wait)
        return self._mark(connection)

    def guard(self, connection: Connection, limits: Limits) -> Sight:
        """Become the only writer, then read."""
        _end(connection)
        _limit(connection, limits.wait)
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return Sight(mark=self._mark(connection), origin="")

    def claim(self, connection: Connection, limits: Limits) -> Sight:
        """Look, become the only writer, make the table if there is none, then read."""
        self._look(connection)
        _end(connection)
        # FULL leaves the folder unsynced in rollback mode: after a power cut the journal could
        # come back and undo the claim. It stays so on this connection of the pool.
        connection.exec_driver_sql("PRAGMA synchronous = EXTRA")
        self._begin(connection, limits.wait)
        connection.execute(CreateTable(self._table, if_not_exists=True))
        return Sight(mark=self._mark(connection), origin="")

    def record(self, connection: Connection, mark: Mark, *, found: bool) -> None:
        """Write the mark."""
        if found:
            connection.execute(delete(self._table).where(self._where))
        connection.execute(insert(self._table).values(row_of(self._domain, mark)))

    def check(self, statement: str) -> None:
        """Refuse what ends a transaction; what an error ends shows in the phase."""
        if _CONTROL.match(statement):
            expected = "no BEGIN, COMMIT, ROLLBACK or ATTACH in here: leave the block to end it"
            raise InvalidArgument("sql", statement, expected)

    def is_over(self, error: DBAPIError) -> bool:
        """Tell no: SQLite's driver knows."""
        return False

    def release(self, connection: Connection) -> None:
        """Put the connection's own timeout back."""
        if connection.info.pop(_LIMITED, False):
            _wait(connection, connection.info[_OWN])

    def phase(self, connection: Connection) -> Phase:
        """Ask the driver."""
        return Phase.OPEN if _driver(connection).in_transaction else Phase.NOT_BEGUN

    @staticmethod
    def fault(error: DBAPIError) -> Fault:
        """Tell it by SQLite's primary code."""
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        return _FAULTS.get(code, Fault.OTHER)

    @staticmethod
    def reason(error: DBAPIError) -> str:
        """Tell SQLite's words."""
        return str(error.orig)

    def holders(self, connection: Connection) -> str:
        """Name the processes that hold the file's locks, as far as the system tells."""
        return holders(_file(connection), "begin")

    def _begin(self, connection: Connection, seconds: float) -> None:
        """Take the write lock, asking for it every millisecond.

        SQLite's own waiting soon asks only ten times a second, too seldom to find the gap
        between the transactions of a busy writer. Told to wait for a millisecond, it sleeps
        in our place: the thread of an asynchronous driver, not the event loop.
        """
        _limit(connection, _PAUSE)
        deadline = time.monotonic() + seconds
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            except DBAPIError as error:
                if self.fault(error) is not Fault.BUSY or time.monotonic() >= deadline:
                    raise
            else:
                return

    def _mark(self, connection: Connection) -> Mark | None:
        try:
            return mark_of(connection.execute(self._read).one_or_none())
        except DBAPIError as error:
            if f"no such table: {self._name}" in str(error.orig):
                return None
            raise

    def _look(self, connection: Connection) -> None:
        driver = _driver(connection)
        if driver.isolation_level is None and not driver.in_transaction:
            raise Unfit("each statement is a transaction by itself: the engine is in AUTOCOMMIT")
        if not _file(connection).name:
            raise Unfit("the database is in memory, where nobody else can see its marks")
        if connection.exec_driver_sql("PRAGMA synchronous").scalar() == 0:
            raise Unfit("PRAGMA synchronous is OFF: a power cut may take the mark back")
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        if mode in {"off", "memory"}:
            raise Unfit(f"PRAGMA journal_mode is {mode}: nothing could be rolled back after a kill")


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _file(connection: Connection) -> Path:
    """Return the main database's file; a path without a name when it has none."""
    rows = connection.exec_driver_sql("PRAGMA database_list")
    return Path(next(file for _, name, file in rows if name == "main"))


def _limit(connection: Connection, seconds: float) -> None:
    """Wait no longer than this for a lock, nor longer than the connection's own timeout."""
    if _OWN not in connection.info:
        connection.info[_OWN] = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
    if seconds * 1000 < connection.info[_OWN]:
        connection.info[_LIMITED] = True
        _wait(connection, max(1, int(seconds * 1000)))


def _wait(connection: Connection, milliseconds: int) -> None:
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {milliseconds}")


def _end(connection: Connection) -> None:
    """End what a driver or a listener may have begun: it has no lock, and nothing was done."""
    if _driver(connection).in_transaction:
        connection.exec_driver_sql("ROLLBACK")
