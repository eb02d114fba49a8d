"""The SQL fence on MariaDB: which statements it runs, and what the server's errors mean.

A guarded transaction reads the mark with LOCK IN SHARE MODE, a claim writes its row. Both see
the latest committed row, whatever the isolation level (MariaDB, "LOCK IN SHARE MODE"). Nobody
passes who waits for a row, so the claim waits for the transactions that are open, and goes
before all that begin later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

from zkelect.errors import Misuse
from zkelect.stores import sql_mariadb_session
from zkelect.stores.sql_backend import Fault, Limits, Phase, Sight, Unfit
from zkelect.stores.sql_mariadb_session import SHORTEST
from zkelect.stores.sql_table import ddl, mark_of, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Table, TextClause

    from zkelect.stores.mark import Mark

__all__ = ["MariadbBackend"]

# MariaDB, "MariaDB Error Code Reference".
_NO_TABLE: Final = 1146
_DENIED: Final = {1044, 1142}
_FAULTS: Final = {
    1205: Fault.BUSY,  # lock wait timeout
    1969: Fault.OVERTIME,  # by max_statement_time
    1317: Fault.OVERTIME,  # by KILL QUERY
    1020: Fault.CONFLICT,  # changed since the snapshot was made (innodb_snapshot_isolation)
    1206: Fault.CONFLICT,  # the lock table is full
    1213: Fault.CONFLICT,  # deadlock
    1044: Fault.UNFIT,  # this user may not use the database
    1046: Fault.UNFIT,  # no database was chosen
    1142: Fault.UNFIT,  # this user may not do that
    1290: Fault.UNFIT,  # --read-only
    1792: Fault.UNFIT,  # a read-only transaction
    1836: Fault.UNFIT,  # read-only mode
}
_IN_TRANSACTION: Final = 1  # SERVER_STATUS_IN_TRANS, in each answer of the server

# For the fence's own statements: it ends a wait for a lock too, and has fractions of a second,
# where innodb_lock_wait_timeout has whole ones.
_WITHIN: Final = "SET STATEMENT max_statement_time = :wait FOR "
_READ: Final = (
    f"{_WITHIN}SELECT token, election, holder, origin,"  # noqa: S608  # the name is quoted
    " CONCAT('server_id ', @@global.server_id),"
    " @@global.read_only, @@in_transaction, @zkelect_begun FROM {table} WHERE domain = :domain"
)
_TAKE: Final = (
    f"{_WITHIN}INSERT INTO {{table}}"  # noqa: S608  # the name is quoted
    " (domain, token, election, holder, origin)"
    " VALUES (:domain, :nobody, '', '', '') ON DUPLICATE KEY UPDATE domain = :domain"
)

# In a claim's transaction only: it is updated before the commit.
_NOBODY: Final = "-" * 59


class MariadbBackend:
    """MariaDB, for one domain; MySQL is refused, since nobody has tried it.

    Replication: a replica may lack the last commits, and with them a mark. A server is known by
    its ``server_id``, of which replication demands another one of each server (MariaDB, "Setting
    Up Replication"), and which it keeps on another machine: where a replica has taken over,
    everybody is told FenceStateLost. Not told is a server put back from a backup of its own,
    but by fences that have seen a higher mark. A node of a Galera cluster is refused.

    Isolation: the session's own, REPEATABLE READ as a rule; the mark is read as it was committed
    last. Durability: that of the data. Unless innodb_flush_log_at_trx_commit is 1, a crash can
    take the latest commits back, marks as well.

    Cost: three statements more than without the guard (timeouts, mark, timeouts put back), two
    for a bare token; a claim is seven, once per term.

    :param table: the fence's table, with its schema. :param name: it, quoted for SQL.
    """

    def __init__(self, *, domain: str, table: Table, name: str) -> None:
        self._domain, self._table, self._name = domain, table, name
        quoted = name.replace(":", "\\:")  # else text() takes it for a parameter
        read = _READ.format(table=quoted)
        self._read, self._share = text(read), text(f"{read} LOCK IN SHARE MODE")
        self._take = text(_TAKE.format(table=quoted))

    def status(self, connection: Connection, limits: Limits) -> Mark | None:
        """Read the mark."""
        return _mark_of(self._row(connection, self._read, limits))

    def guard(self, connection: Connection, limits: Limits) -> Sight:
        """Set the timeouts, then share the row."""
        sql_mariadb_session.enter(connection, limits.lease)
        row = self._row(connection, self._share, limits)
        if row is None:
            return Sight(mark=None, origin="")
        origin, read_only, is_open, begun = row[4:]
        if not is_open:
            raise Unfit(_AUTOCOMMIT)
        if read_only:
            raise Unfit(_READ_ONLY)
        if begun:
            raise Misuse(f"{self._name}: the guard must be the first statement of its transaction")
        return Sight(mark=_mark_of(row), origin=origin)

    def claim(self, connection: Connection, limits: Limits) -> Sight:
        """Look, make the table if there is none, then take the row, or make it, and read."""
        _look_at_server(connection)
        sql_mariadb_session.enter(connection, limits.lease)
        self._look_at_table(connection)
        self._take_row(connection, limits)
        row = self._row(connection, self._share, limits)
        if row is None:
            raise Unfit(f"{self._name} hides the row that was written to it")
        return Sight(mark=_mark_of(row), origin=row[4])

    def record(self, connection: Connection, mark: Mark, *, found: bool) -> None:
        """Write the mark over the row that the claim has taken."""
        where = self._table.c.domain == self._domain
        connection.execute(update(self._table).where(where).values(row_of(self._domain, mark)))

    def phase(self, connection: Connection) -> Phase:
        """Tell it by what was done here; by the server's flags, which tell of writes, before."""
        driver: Any = connection.connection.driver_connection
        is_open = sql_mariadb_session.is_entered(connection)
        is_open = is_open or driver.server_status & _IN_TRANSACTION
        return Phase.OPEN if is_open else Phase.NOT_BEGUN

    def check(self, statement: str) -> None:
        """Refuse what could end the transaction."""
        sql_mariadb_session.check(statement)

    def is_over(self, error: DBAPIError) -> bool:
        """Whether InnoDB has rolled back more than the statement.

        After a lock wait timeout it may have: innodb_rollback_on_timeout.
        """
        return self.fault(error) in {Fault.CONFLICT, Fault.BUSY}

    def release(self, connection: Connection) -> None:
        """Put the session's timeouts back."""
        sql_mariadb_session.release(connection)

    @staticmethod
    def fault(error: DBAPIError) -> Fault:
        """Tell it by the error's number."""
        return _FAULTS.get(_code(error), Fault.OTHER)

    @staticmethod
    def reason(error: DBAPIError) -> str:
        """Tell the server's words."""
        words = " ".join(str(part) for part in getattr(error.orig, "args", ()))
        return " ".join(words.split()) or str(error)

    def holders(self, connection: Connection) -> str:
        """Name the transactions that hold locks; MariaDB does not tell whose row is which.

        Only users with the PROCESS privilege are told.
        """
        rows = connection.execute(_HOLDERS).all()
        return " or ".join(row[0] for row in rows)

    def _row(
        self, connection: Connection, read: TextClause, limits: Limits
    ) -> Sequence[Any] | None:
        parameters = {"wait": max(SHORTEST, limits.wait), "domain": self._domain}
        try:
            return connection.execute(read, parameters).one_or_none()
        except DBAPIError as error:
            if _code(error) == _NO_TABLE:
                return None
            raise

    def _take_row(self, connection: Connection, limits: Limits) -> None:
        """Lock the row alone, and make it if there is none."""
        wait = {"wait": max(SHORTEST, limits.wait)}
        connection.execute(self._take, {**wait, "domain": self._domain, "nobody": _NOBODY})

    def _look_at_table(self, connection: Connection) -> None:
        found = connection.execute(_TABLE, self._place).one_or_none()
        if found is None:
            self._make_table(connection)
            found = connection.execute(_TABLE, self._place).one()
        engine, collation = found
        if engine is None:
            raise Unfit(f"{self._name} is no table; the rows of a view cannot be locked")
        if engine != "InnoDB":
            raise Unfit(
                f"{self._name} is of the engine {engine}, which has no transactions. "
                f"ALTER TABLE {self._name} ENGINE = InnoDB, and look at the data's tables too"
            )
        if not str(collation).endswith("_bin"):
            raise Unfit(
                f"{self._name} compares domains by {collation}, to which two of them may be one; "
                f"make it anew: {ddl(self._table, connection.dialect)}"
            )

    def _make_table(self, connection: Connection) -> None:
        try:
            connection.execute(CreateTable(self._table, if_not_exists=True))
        except DBAPIError as error:
            if _code(error) not in _DENIED:
                raise
            raise Unfit(
                f"the table {self._name} is missing and could not be made ({self.reason(error)}). "
                f"Let a user that may do it run once: {ddl(self._table, connection.dialect)}"
            ) from error

    @property
    def _place(self) -> dict[str, str]:
        return {"schema": self._table.schema or "", "table": self._table.name}


def _mark_of(row: Sequence[Any] | None) -> Mark | None:
    return None if row is None or row[0] == _NOBODY else mark_of(row)


def _look_at_server(connection: Connection) -> None:
    if not getattr(connection.dialect, "is_mariadb", False):
        raise Unfit("this server is not MariaDB; the fence is not tried on MySQL")
    found = {row[0].lower(): row[1] for row in connection.execute(_SETTINGS)}
    if found.get("autocommit") == "ON":
        raise Unfit(_AUTOCOMMIT)
    if "ON" in {found.get("read_only"), found.get("tx_read_only")}:
        raise Unfit(_READ_ONLY)
    if found.get("wsrep_on") == "ON":  # not every build has it
        raise Unfit(
            "this server is a node of a Galera cluster, where a lock does not reach beyond its "
            "node: two leaders could write on two nodes. Use one server with replicas"
        )


def _code(error: DBAPIError) -> int:
    """Return MariaDB's number, which the drivers give first; 0 when there is none."""
    first = next(iter(getattr(error.orig, "args", ())), 0)
    return first if isinstance(first, int) else 0


_AUTOCOMMIT: Final = (
    "each statement is a transaction by itself: the engine, or its driver, is in AUTOCOMMIT. "
    "Give the fence an engine without it"
)
_READ_ONLY: Final = (
    "this server, or this session, is read-only (read_only, tx_read_only): a replica, or a "
    "primary that is being replaced. Connect to the primary"
)
_SETTINGS: Final = text(
    "SHOW SESSION VARIABLES"
    " WHERE variable_name IN ('autocommit', 'read_only', 'tx_read_only', 'wsrep_on')"
)
# Without constants for both names MariaDB opens every table that there is, to look.
_PLACE: Final = "WHERE table_schema = :schema AND table_name = :table"
_TABLE: Final = text(
    "SELECT engine, (SELECT collation_name FROM information_schema.columns"  # noqa: S608  # constant
    f" {_PLACE} AND column_name = 'domain') FROM information_schema.tables {_PLACE}"
)
_HOLDERS: Final = text(
    "SELECT CONCAT('server connection ', id, ' (', user, '@', host, ', open for ',"
    " TIMESTAMPDIFF(SECOND, trx_started, NOW()), ' s)')"
    " FROM information_schema.innodb_trx"
    " JOIN information_schema.processlist ON id = trx_mysql_thread_id"
    " WHERE trx_tables_locked > 0 AND id <> CONNECTION_ID() ORDER BY trx_started"
)
