"""A pgbouncer of our own in front of a PostgreSQL server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Literal

import psycopg
from servers.packages import program
from servers.postgresql import USER
from servers.process import Server, ServerProcess, home

from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from servers.postgresql import PostgreSql

__all__ = ["PgBouncer"]

_ACCOUNT: Final = "postgres"
# "any" lets everybody in as the user that the database's line names.
_CONFIGURATION: Final = """\
[databases]
* = host={host} port={server} user={user}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 200
"""


class PgBouncer(Server):
    """A pool in front of the server, on a free loopback port.

    :param mode: when a client gives its server connection back (pgbouncer, "pool_mode").
    :param size: server connections for each database, 1 …
    """

    def __init__(
        self,
        server: PostgreSql,
        mode: Literal["session", "transaction", "statement"],
        *,
        size: int = 20,
    ) -> None:
        self._server, self._mode, self._size = server, mode, size

    def url(self, driver: str = "psycopg", *, database: str = "postgres") -> str:
        """Return SQLAlchemy's URL that leads through the pool."""
        return f"postgresql+{driver}://{USER}@{LOOPBACK}:{self._port.number}/{database}"

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection[Any]:
        """Open a connection of the test's own through the pool, in autocommit."""
        address = {"host": LOOPBACK, "port": self._port.number, "user": USER, "dbname": database}
        return psycopg.connect(**{**address, **options}, autocommit=True)

    def _open(self, opened: ExitStack) -> None:
        directory = opened.enter_context(home("pgbouncer", _ACCOUNT))
        self._port = Port()
        opened.callback(self._port.release)
        file = directory / "pgbouncer.ini"
        file.write_text(self._configuration(), "ascii")
        command = [program("pgbouncer"), str(file)]
        self.process = ServerProcess(command, directory=directory, user=_ACCOUNT)
        opened.callback(self.process.kill)
        self.process.start(self._answers)

    def _configuration(self) -> str:
        return _CONFIGURATION.format(
            host=LOOPBACK,
            server=self._server.port,
            user=USER,
            port=self._port.number,
            mode=self._mode,
            size=self._size,
        )

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True
