"""What a guarded transaction needs of its session on MariaDB: timeouts, and harmless SQL.

MariaDB has no timeouts of one transaction: they are the session's, set before the guard, and
put back before the COMMIT or ROLLBACK. And it has statements that commit what is open, silently
(MariaDB, "SQL statements That Cause an Implicit Commit"): what came after one of them in the
block would be a new transaction without a guard, so they are refused.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from zkelect.errors import InvalidArgument

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["SHORTEST", "check", "enter", "is_entered", "release"]

SHORTEST: Final = 0.001
"""The shortest time in seconds that is asked for: to MariaDB 0 means no limit."""

_REMEMBER: Final = (
    "SET @zkelect_begun = @@in_transaction,"
    " @zkelect_statement = @@SESSION.max_statement_time,"
    " @zkelect_idle = @@SESSION.idle_transaction_timeout"
)
_ENTER: Final = text(_REMEMBER)
# A shorter limit of the user's own stays.
_ENTER_LIMITED: Final = text(
    f"{_REMEMBER}, SESSION max_statement_time = IF(@@SESSION.max_statement_time > 0,"
    " LEAST(@@SESSION.max_statement_time, :statement), :statement),"
    " SESSION idle_transaction_timeout = IF(@@SESSION.idle_transaction_timeout > 0,"
    " LEAST(@@SESSION.idle_transaction_timeout, :idle), :idle)"
)
_RELEASE: Final = (
    "SET SESSION max_statement_time = @zkelect_statement,"
    " SESSION idle_transaction_timeout = @zkelect_idle"
)
_ENTERED: Final = "zkelect_entered"

# What can neither end a transaction nor hide a statement that does, as CALL, SET and DDL can.
_HARMLESS: Final = {
    "DELETE", "DESC", "DESCRIBE", "DO", "EXPLAIN", "INSERT", "RELEASE", "REPLACE", "SAVEPOINT",
    "SELECT", "SHOW", "UPDATE", "VALUES", "WITH",
}  # fmt: skip
# Goes over comments, but not over "/*!" and "/*M!": MariaDB executes those.
_FIRST_WORD: Final = re.compile(r"(?:[\s(]|--\s[^\n]*|#[^\n]*|/\*(?!M?!).*?\*/)*(\w*)", re.DOTALL)
_TO_SAVEPOINT: Final = re.compile(r"\s*ROLLBACK(\s+WORK)?\s+TO\s", re.IGNORECASE)


def enter(connection: Connection, lease: float | None) -> None:
    """Let no statement last longer, and no pause between two, than the lease, if there is one.

    MariaDB counts pauses in whole seconds; they are rounded up. ``@zkelect_begun`` tells after
    this whether the transaction had been begun before.
    """
    if lease is None:
        connection.execute(_ENTER)
    else:
        seconds = max(SHORTEST, lease)
        connection.execute(_ENTER_LIMITED, {"statement": seconds, "idle": math.ceil(seconds)})
    connection.info[_ENTERED] = lease is not None


def is_entered(connection: Connection) -> bool:
    """Whether a transaction of the fence is under way on this connection."""
    return _ENTERED in connection.info


def release(connection: Connection) -> None:
    """Put the session's own timeouts back, if they were changed."""
    if not connection.info.pop(_ENTERED, False):
        return
    try:
        connection.exec_driver_sql(_RELEASE)
    except DBAPIError:
        if not connection.invalidated:
            connection.invalidate()  # else the pool would lend it with our timeouts
        raise


def check(statement: str) -> None:
    """Refuse what could end the transaction.

    :raises InvalidArgument: it could.
    """
    word = _FIRST_WORD.match(statement)
    if _TO_SAVEPOINT.match(statement) or (word and word[1].upper() in _HARMLESS):
        return
    raise InvalidArgument(
        "statement",
        statement,
        "one that reads or writes rows: at DDL, BEGIN, COMMIT, LOCK TABLES and the like MariaDB "
        "commits the guarded transaction, and at CALL or SET it may",
    )
