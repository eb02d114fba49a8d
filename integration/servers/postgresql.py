"""A PostgreSQL server of our own, and its standby."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
from servers.packages import program
from servers.process import Server, ServerProcess, as_user, home

from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["USER", "PostgreSql"]

USER: Final = "zkelect"
"""The database's superuser, without a password."""

_ACCOUNT: Final = "postgres"
# Quick, and safe while the machine does not lose power: a killed process loses nothing.
_QUICK: Final = {"fsync": "off", "full_page_writes": "off"}
_SETTINGS: Final = {
    "listen_addresses": LOOPBACK,
    "max_connections": "200",
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "autovacuum": "off",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


class PostgreSql(Server):
    """One server on a free loopback port, with its data in a temporary directory.

    ::

        with PostgreSql() as primary, primary.standby() as standby:
            primary.kill()
            standby.promote()

    :param settings: lines of postgresql.conf; they win.
    :param durable: force each commit to the disk. Off by default, which is quick.
    :param primary: the server to copy and follow; see :meth:`standby`.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        durable: bool = False,
        primary: PostgreSql | None = None,
    ) -> None:
        self._settings = {**_SETTINGS, **({} if durable else _QUICK), **(settings or {})}
        self._primary = primary
        self._databases = 0

    # --- how to reach it ------------------------------------------------------------------

    @property
    def port(self) -> int:
        """Its TCP port on the loopback interface."""
        return self._port.number

    @property
    def socket_directory(self) -> Path:
        """Where its Unix socket is."""
        return self._home

    def url(self, driver: str = "psycopg", *, database: str = "postgres") -> str:
        """Return SQLAlchemy's URL for it."""
        return f"postgresql+{driver}://{USER}@{LOOPBACK}:{self.port}/{database}"

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection[Any]:
        """Open a connection of the test's own, in autocommit."""
        address = {"host": LOOPBACK, "port": self.port, "user": USER, "dbname": database}
        return psycopg.connect(**{**address, **options}, autocommit=True)

    def ask(self, query: str, *, database: str = "postgres") -> Any:
        """Run one statement; return the first column of its first row, if any."""
        with self.connect(database) as connection:
            cursor = connection.execute(query.encode())
            row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]

    def count_waiting(self) -> int:
        """Return how many lock requests are not granted yet."""
        return int(self.ask("select count(*) from pg_locks where not granted"))

    def create_database(self) -> str:
        """Make an empty database and return its name."""
        self._databases += 1
        name = f"test_{self._databases}"
        with self.connect() as connection:
            connection.execute(f"create database {name} template template0".encode())
        return name

    # --- what happens to it ---------------------------------------------------------------

    def start(self) -> None:
        """Start it, with the data that it had, and wait until it lets clients in."""
        self.process.start(self._answers)

    def stop(self) -> None:
        """End it in order (SIGINT: "fast shutdown", clients are sent away)."""
        self.process.stop(signal.SIGINT)

    def kill(self) -> None:
        """End it and each process of its at once, as a power cut does."""
        if not self.process.running:
            return
        self.process.pause()  # so that it makes no new one meanwhile
        children = _children(self.process.pid)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.kill()
        for child in children:
            _wait_until_ended(child)

    def standby(self, settings: Mapping[str, str] | None = None) -> PostgreSql:
        """Return a server, to be entered, that copies this one and then follows it.

        Replication is asynchronous unless the settings say otherwise.
        """
        return PostgreSql({**self._settings, **(settings or {})}, primary=self)

    def promote(self) -> None:
        """Make a standby a primary, on a new timeline, and wait until it writes."""
        if not self.ask("select pg_promote(wait => true, wait_seconds => 60)"):
            raise TimeoutError("the standby was not promoted within 60 s")

    def wait_replayed(self, primary: PostgreSql) -> None:
        """Wait until this standby shows all that the primary has committed by now."""
        position = primary.ask("select pg_current_wal_flush_lsn()::text")
        query = f"select pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"
        self.process.wait("replayed", lambda: bool(self.ask(query)))

    # --- within ---------------------------------------------------------------------------

    def _open(self, opened: ExitStack) -> None:
        self._home = opened.enter_context(home("postgresql", _ACCOUNT))
        self._port = Port()
        opened.callback(self._port.release)
        self._make()
        self.process = ServerProcess(
            self._command(), directory=self._home, user=_ACCOUNT, environment={"LC_ALL": "C"}
        )
        opened.callback(self.kill)
        self.start()

    @property
    def _data(self) -> Path:
        return self._home / "data"

    def _make(self) -> None:
        if self._primary is None:
            self._run("initdb", "--username", USER, "--auth=trust", "--encoding=UTF8",
                      "--locale=C", "--no-sync", "--no-instructions")  # fmt: skip
        else:
            address = f"host={LOOPBACK} port={self._primary.port} user={USER}"
            self._run("pg_basebackup", "--dbname", address, "--checkpoint=fast",
                      "--wal-method=stream", "--write-recovery-conf", "--no-sync")  # fmt: skip

    def _run(self, name: str, *arguments: str) -> None:
        command = [program(name), "--pgdata", str(self._data), *arguments]
        done = subprocess.run(
            as_user(_ACCOUNT, command), cwd=self._home, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

    def _command(self) -> list[str]:
        places = ("-D", str(self._data), "-p", str(self.port), "-k", str(self._home))
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        return [program("postgres"), *places, *settings]

    def _answers(self) -> bool:
        try:
            self.ask("select 1")
        except psycopg.OperationalError:
            return False
        return True


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _wait_until_ended(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([handle], [], [])
    finally:
        os.close(handle)
