"""A pgbouncer as docs/promotion_clients.md configures it, and the command that leads it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg
from recipes.reaper import reaping
from servers.packages import program
from servers.process import ServerProcess, home

from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["PAGE", "Bouncer", "Leader", "block"]

PAGE: Final = (Path(__file__).parents[2] / "docs" / "promotion_clients.md").read_text("utf-8")
_ACCOUNT: Final = "postgres"
_USERS: Final = '"zkelect" ""\n"pgbouncer" ""\n"looker" ""\n'


def block(language: str) -> str:
    """Return the page's only block of that language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def replaced(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class Bouncer:
    """A pgbouncer of the page, on a free port, in a block; it may be killed and started.

    :param changes: of further lines of the page's configuration.
    """

    def __init__(self, *changes: tuple[str, str]) -> None:
        self._changes = changes

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self.folder = opened.enter_context(home("pgbouncer", _ACCOUNT))
            opened.enter_context(reaping(self.folder))
            self._port = Port()
            opened.callback(self._port.release)
            self.file = self.folder / "zkelect.ini"
            self.configure()
            command = [program("pgbouncer"), str(self.folder / "pgbouncer.ini")]
            self.process = ServerProcess(command, directory=self.folder, user=_ACCOUNT)
            opened.callback(self.process.kill)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self.process.log.read_text("utf-8", "replace")[-4000:])
        self._opened.close()

    @property
    def port(self) -> int:
        return self._port.number

    def configure(self, *changes: tuple[str, str]) -> None:
        """Write its configuration: the page's, with the places of this test."""
        (self.folder / "users").write_text(_USERS)
        places = (
            ("listen_port = 6432", f"listen_port = {self.port}"),
            ("= /var/run/postgresql", f"= {self.folder}"),
            ("auth_type = scram-sha-256", "auth_type = trust"),
            ("/etc/pgbouncer/users", str(self.folder / "users")),
            ("/etc/pgbouncer/zkelect.ini", str(self.file)),
            ("admin_users = pgbouncer", "admin_users = pgbouncer\nstats_users = looker"),
        )
        text = replaced(block("ini"), *places, *self._changes, *changes)
        (self.folder / "pgbouncer.ini").write_text(text)

    def start(self) -> None:
        self.process.start(self._answers)

    @property
    def admin(self) -> str:
        return f"host={self.folder} port={self.port} user=pgbouncer dbname=pgbouncer"

    def connect(self, database: str = "app", **options: Any) -> psycopg.Connection[Any]:
        """Open a client's connection."""
        address = {"host": LOOPBACK, "port": self.port, "user": "zkelect", "dbname": database}
        # A plan that is kept belongs to one server connection.
        given = {**address, "prepare_threshold": None, "autocommit": True, **options}
        return psycopg.connect(**given)

    def shown(self, what: str) -> list[dict[str, Any]]:
        """Return the rows of a SHOW."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
            return cursor.execute(f"SHOW {what}".encode()).fetchall()

    def told(self, command: str) -> None:
        """Type a command at the console."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(command.encode())

    def paused(self, database: str = "app") -> bool:
        rows = {row["name"]: row for row in self.shown("DATABASES")}
        return bool(int(rows[database]["paused"]))

    def _answers(self) -> bool:
        try:
            self.shown("VERSION")
        except psycopg.OperationalError:
            return False
        return True


class Leader:
    """A ``zkelect promote pgbouncer`` as a process, in a block."""

    def __init__(
        self, bouncer: Bouncer, zookeeper: str, path: str, *options: str, admin: str = ""
    ) -> None:
        databases = ("--database", "app=dbname=postgres") if "--database" not in options else ()
        self._command = [
            *(sys.executable, "-m", "zkelect.cli", "promote", "pgbouncer", path, "-v"),
            *("--hosts", zookeeper, "--session-timeout", "2", "--name", "pool"),
            *("--admin", admin or bouncer.admin, "--file", str(bouncer.file)),
            *(*databases, *options),
        ]
        self.log = bouncer.folder / "leader.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(signal.SIGKILL)
        if error is not None:
            print(self.said)

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd="/")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it; return its exit status."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(30)
