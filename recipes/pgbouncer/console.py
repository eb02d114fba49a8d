"""pgbouncer's admin console: what it says of its databases, and the commands that hold them."""

from __future__ import annotations

from typing import Any, Final

import attrs
from psycopg.rows import dict_row

from zkelect.recipes.clock import now
from zkelect.recipes.pgbouncer.aim import Address
from zkelect.recipes.pgbouncer.database import Database
from zkelect.recipes.postgres.asking import NoAnswer, connect
from zkelect.recipes.resource import NotNow

__all__ = ["Console", "Offered", "refused"]

_TIMEOUT: Final = 3.0
_PAUSING: Final = 0.2
"""Seconds to wait for PAUSE, which answers only when all transactions have ended. It holds without
that, and without the connection (pgbouncer, admin.c)."""


@attrs.frozen(kw_only=True)
class Offered:
    """A database as pgbouncer has it at present.

    :ivar address: where it leads to; None: to a socket in the default folder.
    :ivar connections: to the server.
    """

    address: Address | None
    paused: bool
    connections: int


class Console:
    """The console of one pgbouncer; each call is a connection of its own, so it may be restarted.

    :param conninfo: libpq's, for a user that is in ``admin_users``, to the database pgbouncer.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def databases(self) -> dict[str, Offered]:
        """Return all databases by name.

        :raises NotNow: as all calls here do; it is away, or refuses.
        """
        return {row["name"]: _offered(row) for row in self._show("SHOW DATABASES")}

    def outdated(self, names: frozenset[str]) -> int:
        """Return how many connections still lead to where these databases led before."""
        rows = self._show("SHOW SERVERS")
        return sum(row["database"] in names and bool(row["close_needed"]) for row in rows)

    def reload(self) -> None:
        """Have it read its configuration; connections that have become wrong end when free."""
        self._run("RELOAD")

    def pause(self, database: Database) -> None:
        """Let no client begin anything; what has begun goes on."""
        try:
            self._run(f"PAUSE {database.quoted}", _PAUSING)
        except NotNow as error:
            if refused(error):
                raise

    def resume(self, database: Database) -> None:
        """Let clients go on."""
        self._run(f"RESUME {database.quoted}")

    def kill(self, database: Database) -> None:
        """End all connections of servers and clients; clients that come have to wait."""
        self._run(f"KILL {database.quoted}")

    def _run(self, command: str, timeout: float = _TIMEOUT) -> None:
        with connect(self._conninfo, now() + timeout) as connection:
            connection.execute(command.encode())

    def _show(self, command: str) -> list[dict[str, Any]]:
        with connect(self._conninfo, now() + _TIMEOUT) as connection:
            return connection.cursor(row_factory=dict_row).execute(command.encode()).fetchall()


def refused(error: NotNow) -> bool:
    """Return whether the console has answered, by an error."""
    return isinstance(error, NoAnswer) and error.sqlstate is not None


def _offered(row: dict[str, Any]) -> Offered:
    host, port = row["host"], int(row["port"])
    return Offered(
        address=None if host is None else Address(host, port),
        paused=bool(int(row["paused"])),
        connections=int(row["current_connections"]),
    )
