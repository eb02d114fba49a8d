"""A PostgreSQL server of the stage, and a connection to it."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import psycopg
from election.waiting import until
from recipes.node import Client, Node
from servers.packages import program
from servers.process import as_user
from sqlalchemy import NullPool, create_engine

from zkelect.recipes.postgres import Place, Postgres
from zkelect.stores import SqlFence
from zkelect.testing.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["PostgresNode"]

_USER: Final = "zkelect"
_SETTINGS: Final = {
    "listen_addresses": LOOPBACK,
    "max_connections": "60",
    "shared_buffers": "16MB",
    "wal_keep_size": "512MB",
    "wal_log_hints": "on",
    "wal_retrieve_retry_interval": "100ms",
    "autovacuum": "off",
    "fsync": "off",  # a killed process loses nothing
    "timezone": "UTC",
}
_TABLE: Final = "create table written (number bigint primary key)"
_INSERT: Final = (
    "insert into written (number) values (%s)"
    " returning extract(epoch from clock_timestamp())::float8"
)
# The setting is what a new transaction begins with; in recovery it is on by itself.
_PROBE: Final = (
    "select extract(epoch from clock_timestamp())::float8,"
    " not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off'"
)


class PostgresClient(Client):
    """One connection to one server."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def probe(self) -> tuple[float, bool]:
        row = self._connection.execute(_PROBE).fetchone()
        assert row is not None
        return row[0], row[1]

    def write(self, number: int) -> float:
        row = self._connection.execute(_INSERT, (number,)).fetchone()
        assert row is not None
        return float(row[0])

    def close(self) -> None:
        self._connection.close()


class PostgresNode(Node):
    """One server of the cluster."""

    resource = Postgres
    account = "postgres"
    errors = (psycopg.Error,)
    safest: ClassVar[dict[str, Any]] = {"policy": {"synchronous": True}}

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        super().__init__(name, folder, port, {**_SETTINGS, **settings})
        self.data = folder / "data"

    # --- how the recipe sees it ---------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"host={LOOPBACK} port={self.port}"

    @property
    def place(self) -> Place:
        return self.placed()

    def placed(self, **options: Any) -> Place:
        local = f"host={self.folder} port={self.port} user={_USER} dbname=postgres"
        credentials = f"user={_USER} dbname=postgres"
        return Place(data_directory=self.data, local=local, credentials=credentials, **options)

    # --- looking --------------------------------------------------------------------------------

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        address = {"host": LOOPBACK, "port": self.port, "user": _USER, "dbname": "postgres"}
        return psycopg.connect(**{**address, "connect_timeout": 2, **options}, autocommit=True)

    def ask(self, query: str) -> Any:
        """Run one statement; return the first column of its first row, if any."""
        with self.connect() as connection:
            cursor = connection.execute(query.encode())
            row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]

    def client(self) -> PostgresClient:
        return PostgresClient(self.connect(tcp_user_timeout=2000))

    def count_followers(self) -> int:
        query = "select count(*) from pg_stat_replication where state = 'streaming'"
        return int(self.ask(query))

    def written(self) -> set[int]:
        with self.connect() as connection:
            return {number for (number,) in connection.execute("select number from written")}

    @contextmanager
    def open_fence(self, domain: str) -> Iterator[SqlFence]:
        url = f"postgresql+psycopg://{_USER}@{LOOPBACK}:{self.port}/postgres"
        yield SqlFence(create_engine(url, poolclass=NullPool), domain=domain)

    @property
    def pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    @property
    def processes(self) -> list[int]:
        pid = self.pid
        if pid is None:
            return []
        with suppress(OSError):
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            return [pid, *map(int, text.split())]
        return []

    @property
    def log(self) -> str:
        log = self.folder / "data.log"
        return log.read_text("utf-8", "replace") if log.exists() else ""

    # --- doing ------------------------------------------------------------------------------------

    def make(self, primary: PostgresNode | None) -> None:
        if primary is None:
            self.run("initdb", "--username", _USER, "--auth=trust", "--encoding=UTF8",
                     "--locale=C", "--no-sync", "--no-instructions")  # fmt: skip
        else:
            source = f"{primary.address} user={_USER} application_name={self.name}"
            self.run("pg_basebackup", "--dbname", source, "--checkpoint=fast",
                     "--wal-method=stream", "--write-recovery-conf", "--no-sync")  # fmt: skip
        self.configure(self.settings)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write its postgresql.conf."""
        own = {"port": str(self.port), "unix_socket_directories": str(self.folder), **settings}
        lines = "".join(f"{name} = '{value}'\n" for name, value in own.items())
        (self.data / "postgresql.conf").write_text(lines)

    def start(self, *options: str) -> None:
        log = str(self.folder / "data.log")
        self.run("pg_ctl", "start", "-w", "-t", "60", "-l", log, *options)

    def join(self, primary: PostgresNode | None) -> None:
        """It follows already, as its data say."""
        if primary is None:
            self.ask(_TABLE)

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "-w", "-m", "fast")

    def cut_off(self) -> None:
        self.ask("alter system set primary_conninfo = ''")
        self.ask("select pg_reload_conf()")
        receiving = "select count(*) from pg_stat_activity where backend_type = 'walreceiver'"
        until(lambda: self.ask(receiving) == 0, f"{self.name} receives nothing")

    def run(self, name: str, *arguments: str) -> str:
        command = as_user(self.account, [program(name), "-D", str(self.data), *arguments])
        done = subprocess.run(
            command,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}\n{self.log[-3000:]}")
        return done.stdout
