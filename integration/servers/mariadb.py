"""A MariaDB server of our own, and its replica."""

from __future__ import annotations

import socket
import subprocess
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pymysql
from servers.packages import program
from servers.process import Server, ServerProcess, as_user, home

from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["USER", "MariaDb"]

USER: Final = "zkelect"
"""May do what an application may: no password, and not above ``read_only`` as root is."""

_ACCOUNT: Final = "mysql"
_RIGHTS: Final = (
    "create, drop, alter, index, select, insert, update, delete, process, replication slave"
)
_SETTINGS: Final = {
    "bind-address": LOOPBACK,
    "skip-name-resolve": "1",
    "max-connections": "200",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "16M",
    "character-set-server": "utf8mb4",
    "log-bin": "binlog",
    "binlog-format": "row",
}
# Quick, and safe while the machine does not lose power: a killed process loses nothing.
_QUICK: Final = {"innodb-flush-log-at-trx-commit": "2", "sync-binlog": "0"}
_server_ids = count(1)


class MariaDb(Server):
    """One server on a free loopback port, with its data in a temporary directory.

    :param settings: options of mariadbd; they win.
    :param durable: force each commit to the disk. Off by default, which is quick.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, *, durable: bool = False) -> None:
        identity = {"server-id": str(next(_server_ids))}
        quick = {} if durable else _QUICK
        self._settings = {**_SETTINGS, **identity, **quick, **(settings or {})}
        self._databases = count(1)

    # --- how to reach it ------------------------------------------------------------------

    @property
    def port(self) -> int:
        """Its TCP port on the loopback interface."""
        return self._port.number

    @property
    def socket_path(self) -> Path:
        """Its Unix socket, by which root comes in."""
        return self._home / "mariadb.sock"

    def url(self, driver: str = "pymysql", *, database: str = "test") -> str:
        """Return SQLAlchemy's URL for it."""
        return f"mariadb+{driver}://{USER}@{LOOPBACK}:{self.port}/{database}"

    def connect(self, database: str | None = None, **options: Any) -> pymysql.Connection[Any]:
        """Open a connection as root, in autocommit."""
        address = {"unix_socket": str(self.socket_path), "user": "root", "database": database}
        return pymysql.connect(**{**address, "autocommit": True, **options})

    def ask(self, query: str, *, database: str | None = None) -> Any:
        """Run one statement as root; return the first column of its first row, if any."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
        return None if row is None else row[0]

    def count_waiting(self) -> int:
        """Return how many transactions wait for a lock.

        By a status variable: InnoDB answers from a cache when its lock tables in
        information_schema are read again within 0.1 s, so who polls them fast enough never
        sees anybody come.
        """
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("show global status like 'Innodb_row_lock_current_waits'")
            row = cursor.fetchone()
        assert row is not None
        return int(row[1])

    def create_database(self) -> str:
        """Make an empty database and return its name."""
        name = f"test_{next(self._databases)}"
        self.ask(f"create database {name}")
        return name

    # --- what happens to it ---------------------------------------------------------------

    def start(self) -> None:
        """Start it, with the data that it had, and wait until it lets clients in."""
        self.process.start(self._answers)

    def stop(self) -> None:
        """End it in order (SIGTERM)."""
        self.process.stop()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self.process.kill()

    def follow(self, primary: MariaDb) -> None:
        """Make this server, which is new, a replica of another, asynchronously."""
        self.ask(
            f"change master to master_host = '{LOOPBACK}', master_port = {primary.port}, "
            f"master_user = '{USER}', master_use_gtid = slave_pos"
        )
        self.ask("start slave")

    def wait_replayed(self, primary: MariaDb) -> None:
        """Wait until this replica shows all that the primary has committed by now."""
        position = primary.ask("select @@gtid_binlog_pos")
        if self.ask(f"select master_gtid_wait('{position}', 60)") != 0:
            raise TimeoutError(f"the replica has not reached {position} within 60 s")

    # --- within ---------------------------------------------------------------------------

    def _open(self, opened: ExitStack) -> None:
        self._home = opened.enter_context(home("mariadb", _ACCOUNT))
        self._port = Port()
        opened.callback(self._port.release)
        self._make()
        self.process = ServerProcess(self._command(), directory=self._home, user=_ACCOUNT)
        opened.callback(self.process.kill)
        self.start()
        self._let_in()

    def _make(self) -> None:
        options = (
            "--no-defaults",
            f"--datadir={self._home / 'data'}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )
        command = [program("mariadb-install-db"), *options]
        done = subprocess.run(
            as_user(_ACCOUNT, command), cwd=self._home, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

    def _command(self) -> list[str]:
        places = {
            "datadir": self._home / "data",
            "socket": self.socket_path,
            "pid-file": self._home / "mariadb.pid",
            "tmpdir": self._home,
            "port": self.port,
        }
        settings = [f"--{name}={value}" for name, value in {**places, **self._settings}.items()]
        return [program("mariadbd"), "--no-defaults", *settings]

    def _let_in(self) -> None:
        """Make the user and a database; not logged, since each replica has its own."""
        with self.connect(init_command="set sql_log_bin = 0") as connection:
            cursor = connection.cursor()
            cursor.execute(f"create user {USER}@'{LOOPBACK}'")
            cursor.execute(f"grant {_RIGHTS} on *.* to {USER}@'{LOOPBACK}'")
            cursor.execute("create database test")

    def _answers(self) -> bool:
        return _listens(self.socket_path) and self.ask("select 1") == 1


def _listens(path: Path) -> bool:
    """Look before PyMySQL does: it leaves its socket open when nobody listens."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0
