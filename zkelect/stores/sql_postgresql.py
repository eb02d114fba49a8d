"""The SQL fence on PostgreSQL: which statements it runs, and what the server's errors mean.

Queue first, then check. A guarded transaction takes the domain's advisory lock shared, a claim
takes it alone: that only makes the queue fair, since PostgreSQL lets new share lockers of a row
pass an UPDATE that waits. The row is the truth: FOR SHARE reads its latest committed version,
also one that was committed while the statement waited, and keeps every claim out until the
transaction ends (PostgreSQL, "Explicit Locking" and "Read Committed Isolation Level").
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import column, insert, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

from zkelect.errors import InvalidArgument
from zkelect.stores.sql_backend import Fault, Limits, Phase, Sight, Unfit
from zkelect.stores.sql_table import ddl, mark_of, row_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table
    from sqlalchemy.sql.selectable import TextualSelect

    from zkelect.stores.mark import Mark

__all__ = ["PostgresqlBackend"]

# What decides here is the SQLSTATE (PostgreSQL, "Error Codes").
_NO_TABLE: Final = {"42P01", "3F000"}
_FAULTS: Final = {
    "55P03": Fault.BUSY,  # lock_not_available
    "40001": Fault.CONFLICT,  # serialization_failure
    "40P01": Fault.CONFLICT,  # deadlock_detected
    "57014": Fault.OVERTIME,  # query_canceled
    "25006": Fault.UNFIT,  # read_only_sql_transaction
    "55000": Fault.UNFIT,  # object_not_in_prerequisite_state: recovery is in progress
    "42501": Fault.UNFIT,  # insufficient_privilege
    "42703": Fault.UNFIT,  # undefined_column: a table of that name that is not the fence's
    "42P05": Fault.UNFIT,  # duplicate_prepared_statement: through a pool that does not know them
    "26000": Fault.UNFIT,  # invalid_sql_statement_name: the same
    "42883": Fault.UNFIT,  # undefined_function: speaks the protocol, but is another server
}
_POOLED: Final = (
    "a pool between us and the server knows no prepared statements; for psycopg give the engine "
    'connect_args={"prepare_threshold": None}'
)
_HINTS: Final = {
    "42501": "the role needs SELECT, INSERT and UPDATE on the fence's table",
    "42P05": _POOLED,
    "26000": _POOLED,
}
_STATEMENT_POOLING: Final = "statement pooling mode"
# libpq's PQtransactionStatus
_PHASES: Final = {0: Phase.NOT_BEGUN, 3: Phase.FAILED}

_CONTROL: Final = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|PREPARE\s+TRANSACTION"
    r"|ROLLBACK(?!\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b))\b",
    re.IGNORECASE | re.DOTALL,
)

# The timeline by the WAL now written: the control file has the old one until the first
# checkpoint after a promotion.
_ORIGIN: Final = (
    "CAST((pg_control_system()).system_identifier AS text)"
    " || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
)


def _limit(name: str, milliseconds: str) -> str:
    """Return the SQL that sets a timeout for this transaction; a shorter one of the user stays."""
    limit = f"CAST(:{milliseconds} AS integer)"
    return (
        f"set_config('{name}', CASE WHEN CAST(current_setting('{name}') AS interval)"
        f" BETWEEN interval '1 ms' AND {limit} * interval '1 ms'"
        f" THEN current_setting('{name}') ELSE CAST({limit} AS text) END, true)"
    )


def _limits(limits: Limits) -> tuple[str, dict[str, int]]:
    """Return the SQL that sets these limits, one text after the other, and its parameters."""
    wait = {"wait": _milliseconds(limits.wait)}
    if limits.lease is None:
        return _WAIT, wait
    return _WAIT_AND_LEASE, {**wait, "lease": _milliseconds(limits.lease)}


def _milliseconds(seconds: float) -> int:
    """Return at least 1: to the server 0 means no limit."""
    return max(1, int(seconds * 1000))


_WAIT: Final = _limit("lock_timeout", "wait")
_WAIT_AND_LEASE: Final = ", ".join(
    (
        _WAIT,
        _limit("statement_timeout", "lease"),
        _limit("idle_in_transaction_session_timeout", "lease"),
    )
)


class PostgresqlBackend:
    """PostgreSQL, for one domain.

    :param table: the fence's table, with its schema. :param name: it, quoted for SQL.
    """

    def __init__(self, *, domain: str, table: Table, name: str) -> None:
        self._domain, self._table, self._name = domain, table, name
        self._quoted = ".".join(map(_quoted, (table.schema or "", table.name)))
        self._key = _key(f"{self._quoted} {domain}")
        self._guards = {sql: self._guarding(sql) for sql in (_WAIT, _WAIT_AND_LEASE)}
        columns = table.c
        self._read = select(columns.token, columns.election, columns.holder, columns.origin).where(
            columns.domain == domain
        )

    def _guarding(self, limits: str) -> TextualSelect:
        """Return the guard: the limits, the queue, the row and the server, in one statement.

        The order is forced. CASE needs the limits before the lock. The locking of the row is
        the plan's last step, after the columns have been computed; if the row has changed
        since the statement began, they are computed anew from its latest version.
        """
        name = self._quoted.replace(":", "\\:")  # else text() takes it for a parameter
        return text(
            f"SELECT token, election, holder, origin, {_ORIGIN},"  # noqa: S608 - name is quoted
            f" pg_advisory_xact_lock_shared(CASE WHEN num_nonnulls({limits}) > 0"
            f" THEN CAST(:key AS bigint) END) FROM {name} WHERE domain = :domain FOR SHARE"
        ).columns(*map(column, ("token", "election", "holder", "origin", "here", "queue")))

    def status(self, connection: Connection, limits: Limits) -> Mark | None:
        """Read the mark."""
        _limit_transaction(connection, limits)
        try:
            return mark_of(connection.execute(self._read).one_or_none())
        except DBAPIError as error:
            if _state(error) in _NO_TABLE:
                return None
            raise

    def guard(self, connection: Connection, limits: Limits) -> Sight:
        """Take the queue's lock shared and the row's; see :meth:`_guarding`."""
        sql, parameters = _limits(limits)
        parameters["key"] = self._key
        found = {**parameters, "domain": self._domain}
        try:
            row = connection.execute(self._guards[sql], found).one_or_none()
        except DBAPIError as error:
            if _state(error) in _NO_TABLE:
                return Sight(mark=None, origin="")
            raise
        if self.phase(connection) is Phase.NOT_BEGUN:
            raise Unfit(_AUTOCOMMIT)
        return Sight(mark=mark_of(row), origin="" if row is None else row[4])

    def claim(self, connection: Connection, limits: Limits) -> Sight:
        """Look, make the table if there is none, then queue and read."""
        # Each statement after the lock must see what was committed while it was waited for.
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"))
        _look_at_server(connection, limits)
        if self._look_at_table(connection) is None:
            self._make_table(connection)
            self._look_at_table(connection)
        origin = connection.execute(_QUEUE, {"key": self._key}).scalar_one()
        row = connection.execute(self._read.with_for_update()).one_or_none()
        return Sight(mark=mark_of(row), origin=origin)

    def record(self, connection: Connection, mark: Mark, *, found: bool) -> None:
        """Write the mark."""
        row = row_of(self._domain, mark)
        if found:
            connection.execute(
                update(self._table).where(self._table.c.domain == self._domain).values(row)
            )
        else:
            connection.execute(insert(self._table).values(row))

    def check(self, statement: str) -> None:
        """Refuse transaction control; what hides behind another statement shows in the phase."""
        if _CONTROL.match(statement):
            expected = "no BEGIN, COMMIT or ROLLBACK in here: leave the block to end it"
            raise InvalidArgument("sql", statement, expected)

    def is_over(self, error: DBAPIError) -> bool:
        """Tell no: what an error ends shows in the phase, and a savepoint may go on."""
        return False

    def release(self, connection: Connection) -> None:
        """Put nothing back: the limits are local to the transaction."""

    def phase(self, connection: Connection) -> Phase:
        """Ask the driver, which follows what the server says of it."""
        driver: Any = connection.connection.driver_connection
        if connection.dialect.driver == "asyncpg":  # it cannot tell a failed one
            return Phase.OPEN if driver.is_in_transaction() else Phase.NOT_BEGUN
        return _PHASES.get(driver.info.transaction_status, Phase.OPEN)

    @staticmethod
    def fault(error: DBAPIError) -> Fault:
        """Tell it by the SQLSTATE, or by the connection's end."""
        if _STATEMENT_POOLING in str(error.orig):  # pgbouncer; its code is that of much else
            return Fault.UNFIT
        if error.connection_invalidated:
            return Fault.LOST
        return _FAULTS.get(_state(error), Fault.OTHER)

    @staticmethod
    def reason(error: DBAPIError) -> str:
        """Tell the server's words, without the line of the SQL that they point at."""
        words, hint = str(error.orig).partition("\n")[0], _HINTS.get(_state(error), "")
        return f"{words}; {hint}" if hint else words

    def holders(self, connection: Connection) -> str:
        """Name the server processes whose advisory locks are in the way."""
        rows = connection.execute(_HOLDERS, {"key": self._key}).all()
        return "; ".join(row[0] for row in rows)

    def _look_at_table(self, connection: Connection) -> str | None:
        """Return the kind of relation that bears the table's name, None if there is none."""
        still_open, kind, persistence = connection.execute(_LOOK, {"name": self._quoted}).one()
        if still_open != "yes":
            raise Unfit(_AUTOCOMMIT)
        if kind not in {None, "r"}:
            raise Unfit(f"{self._name} is no plain table, so its rows cannot be locked")
        if persistence == "u":
            raise Unfit(
                f"{self._name} is UNLOGGED: a crash empties it, marks and all. "
                f"ALTER TABLE {self._name} SET LOGGED"
            )
        if persistence == "t":
            raise Unfit(f"{self._name} is a temporary table: nobody else can see its marks")
        return None if kind is None else str(kind)

    def _make_table(self, connection: Connection) -> None:
        # IF NOT EXISTS does not queue: the second of two at once would fail.
        connection.execute(_QUEUE, {"key": _key(self._quoted)})
        try:
            connection.execute(CreateTable(self._table, if_not_exists=True))
        except DBAPIError as error:
            if _state(error) not in {"42501", "3F000"}:
                raise
            statement = ddl(self._table, connection.dialect)
            raise Unfit(
                f"the table {self._name} is missing and could not be made "
                f"({self.reason(error)}). Let a role that may do it run once: {statement}"
            ) from error


def _look_at_server(connection: Connection, limits: Limits) -> None:
    sql, parameters = _limits(limits)
    standby, read_only, *_ = connection.execute(text(f"{_SETTINGS}, {sql}"), parameters).one()
    if standby:
        raise Unfit("this server is a standby: it takes no writes. Connect to the primary")
    if read_only:
        raise Unfit(
            "transactions are read-only here (default_transaction_read_only); "
            "connect to a server, and as a role, that may write"
        )


def _limit_transaction(connection: Connection, limits: Limits) -> None:
    sql, parameters = _limits(limits)
    connection.execute(text(f"SELECT {sql}"), parameters)


def _quoted(name: str) -> str:
    """Quote an identifier; SQLAlchemy's own quoting doubles "%" too, for some drivers."""
    return '"' + name.replace('"', '""') + '"'


def _key(name: str) -> int:
    """Return the advisory lock of this name: 64 bits, signed, as PostgreSQL has them."""
    digest = hashlib.sha256(f"zkelect {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _state(error: DBAPIError) -> str:
    """Return the SQLSTATE: psycopg and asyncpg name it so, psycopg2 calls it pgcode."""
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return state or ""


_AUTOCOMMIT: Final = (
    "each statement is a transaction by itself: the engine, or its driver, is in AUTOCOMMIT. "
    "Give the fence an engine without it"
)
# All local to the transaction. Its commit is flushed even where others are not: a crash that
# undid the claim would bring the old leader's mark back.
_SETTINGS: Final = (
    "SELECT pg_is_in_recovery(), CAST(current_setting('transaction_read_only') AS boolean),"
    " set_config('zkelect.open', 'yes', true),"
    " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    " WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
)
_LOOK: Final = text(
    "SELECT current_setting('zkelect.open', true), CAST(relkind AS text),"
    " CAST(relpersistence AS text)"
    " FROM (SELECT to_regclass(:name) AS oid) AS named LEFT JOIN pg_class USING (oid)"
)
_QUEUE: Final = text(f"SELECT {_ORIGIN}, pg_advisory_xact_lock(:key)")
_HOLDERS: Final = text(
    "SELECT concat('server process ', pid, ' (', concat_ws(', ', nullif(application_name, ''),"
    " client_addr, state), ')')"
    " FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (CAST(classid AS bigint) << 32 | CAST(objid AS bigint)) = CAST(:key AS bigint)"
    " ORDER BY pid"
)
