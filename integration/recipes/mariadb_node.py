"""MariaDB servers on this machine, as what a cluster is made of."""

from __future__ import annotations

import functools
import os
import select
import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import pymysql
from election.waiting import until
from pymysql.converters import escape_string
from pymysql.cursors import DictCursor
from recipes.node import Client, Node
from servers.packages import program
from servers.process import as_user
from sqlalchemy import NullPool, create_engine

from zkelect.recipes.clock import now
from zkelect.recipes.mariadb import MariaDB, Place
from zkelect.recipes.member import Answer, Member
from zkelect.stores import SqlFence
from zkelect.testing.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["APPLICATION", "MariaDBClient", "MariaDBNode", "ask_dead_switch"]

APPLICATION: Final = "app"
"""May write while the server is open, and is not above ``read_only``."""
_ACCOUNT: Final = "mysql"
_ADMIN: Final = "zkelect"
_REPLICATION: Final = "replication"
_PASSWORD: Final = "it's a \\ secret"
_PID: Final = "mariadbd.pid"
_SETTINGS: Final = {
    "user": _ACCOUNT,
    "bind-address": LOOPBACK,
    "skip-name-resolve": "1",
    "innodb-buffer-pool-size": "16M",
    "innodb-log-file-size": "16M",
    "innodb-flush-log-at-trx-commit": "1",
    "sync-binlog": "1",
    "innodb-flush-method": "nosync",  # a killed process loses nothing
    "debug-no-sync": "1",  # as above
    "log-bin": "binlog",
    "binlog-format": "row",
    "log-slave-updates": "1",
    "gtid-strict-mode": "1",
    "read-only": "1",
    "skip-slave-start": "1",
    "slave-net-timeout": "5",
}
_BEGINNING: Final = f"""\
flush privileges;
create user {_ADMIN}@'%';
grant all on *.* to {_ADMIN}@'%' with grant option;
create user {_REPLICATION}@'%' identified by '{escape_string(_PASSWORD)}';
grant replication slave on *.* to {_REPLICATION}@'%';
revoke read_only admin on *.* from root@localhost;
create database zkelect;
create database test;
create user {APPLICATION}@'%';
grant select, insert on test.* to {APPLICATION}@'%';
create table test.written (number bigint primary key) engine=InnoDB;
"""
# The shell ends at once, as systemctl does; the server is nobody's child.
_START: Final = '"$0" --defaults-file="$1" >>"$2" 2>&1 </dev/null &'
# While a claim is made, read_only is off, and no session of an application may write.
_PROBE: Final = (
    "select unix_timestamp(sysdate(6)), @@global.read_only = 0 and @@global.tx_read_only = 0"
)
_WRITE: Final = "insert into test.written (number) values (%s) returning unix_timestamp(sysdate(6))"
_FOLLOWERS: Final = (
    "select count(*) from information_schema.processlist where command = 'Binlog Dump'"
)


class MariaDBClient(Client):
    """A connection of an application."""

    def __init__(self, connection: pymysql.Connection[Any]) -> None:
        self._connection = connection

    def probe(self) -> tuple[float, bool]:
        at, writable = self._ask(_PROBE)
        return float(at), bool(writable)

    def write(self, number: int) -> float:
        (at,) = self._ask(_WRITE, number)
        return float(at)

    def close(self) -> None:
        with suppress(pymysql.Error):
            self._connection.close()

    def _ask(self, query: str, *values: object) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return cursor.fetchone()


class MariaDBNode(Node):
    """One server of the cluster; it is fenced by a kill of its process."""

    resource: ClassVar[type[MariaDB]] = MariaDB
    account: ClassVar[str] = _ACCOUNT
    errors: ClassVar[tuple[type[Exception], ...]] = (pymysql.Error,)
    heals: ClassVar[bool] = False
    safest: ClassVar[dict[str, Any]] = {"policy": {"require_fence": True}}

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        super().__init__(name, folder, port, {**_SETTINGS, **settings})
        self.data = folder / "data"
        self.config = folder / "my.cnf"
        self.socket = folder / "socket"

    # --- how the recipe sees it ---------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def start_command(self) -> tuple[str, ...]:
        """What starts it and returns, as ``systemctl start mariadb`` does."""
        words = (program("mariadbd"), str(self.config), str(self.folder / "log"))
        return ("/usr/bin/setsid", "/bin/sh", "-c", _START, *words)

    def placed(self, **options: Any) -> Place:
        usual = {
            "socket": self.socket,
            "data_directory": self.data,
            "user": _ADMIN,
            "replication_user": _REPLICATION,
            "replication_password": _PASSWORD,
            "start": self.start_command,
        }
        return Place(**{**usual, **options})

    def fence(self) -> Callable[[Member, float], Answer] | None:
        return functools.partial(_kill_member, self.folder.parent)

    # --- making it --------------------------------------------------------------------------------

    @classmethod
    def prepare(cls, folder: Path) -> None:
        """Make data that each server begins with: the same, without any history."""
        beginning = folder / "beginning.sql"
        beginning.write_text(_BEGINNING)
        options = (
            f"--datadir={folder / 'model'}",
            f"--tmpdir={folder}",
            f"--extra-file={beginning}",
            "--auth-root-socket-user=root",
            "--skip-test-db",
            "--innodb-log-file-size=16M",
        )
        command = as_user(cls.account, [program("mariadb-install-db"), "--no-defaults", *options])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

    def make(self, primary: Self | None) -> None:
        """The same for all: what the primary has since they get by replication."""
        del primary
        own = {
            "datadir": self.data,
            "tmpdir": self.folder,  # a start deletes the temporary tables of others that share it
            "socket": self.socket,
            "pid-file": self.folder / _PID,
            "port": self.port,
            "server-id": self.port,
        }
        lines = (f"{name} = {value}\n" for name, value in {**own, **self.settings}.items())
        self.config.write_text("[mariadbd]\n" + "".join(lines))
        shutil.rmtree(self.data, ignore_errors=True)
        model = self.folder.parent / "model"
        subprocess.run(["/bin/cp", "-a", str(model), str(self.data)], check=True)

    def start(self) -> None:
        subprocess.run(self.start_command, stdin=subprocess.DEVNULL, check=True)
        until(self._answers, f"{self.name} answers")

    def join(self, primary: Self | None) -> None:
        if primary is None:
            self.ask("set global read_only = 0")
            return
        self.ask(
            f"change master to master_host = '{LOOPBACK}', master_port = {primary.port},"
            f" master_user = '{_REPLICATION}', master_password = '{escape_string(_PASSWORD)}',"
            " master_use_gtid = slave_pos, master_connect_retry = 1"
        )
        self.ask("start slave")
        until(lambda: self.status()["Slave_IO_Running"] == "Yes", f"{self.name} follows")

    def rebuild(self, primary: Self) -> None:
        """Load a dump of the primary into an empty server; its agent lets it follow."""
        self.kill()
        self.make(primary)
        self.start()
        reached = (f"--host={LOOPBACK}", f"--user={_ADMIN}")
        dump = [program("mariadb-dump"), *reached, f"--port={primary.port}", "--all-databases",
                "--single-transaction", "--master-data=1", "--gtid"]  # fmt: skip
        load = [program("mariadb"), *reached, f"--port={self.port}",
                "--init-command=set sql_log_bin = 0"]  # fmt: skip
        with subprocess.Popen(dump, stdout=subprocess.PIPE) as dumping:
            subprocess.run(load, stdin=dumping.stdout, check=True)
        assert dumping.returncode == 0, "the dump failed"

    # --- looking --------------------------------------------------------------------------------

    def connect(self, user: str = _ADMIN, **options: Any) -> pymysql.Connection[Any]:
        address = {"host": LOOPBACK, "port": self.port, "user": user, "autocommit": True}
        timeouts = {"connect_timeout": 2, "read_timeout": 2, "write_timeout": 2}
        # Else PyMySQL makes an SSL context for each connection, 26 ms of a processor's time.
        plain = {"ssl_disabled": True}
        return pymysql.connect(**{**address, **timeouts, **plain, **options})

    def client(self) -> MariaDBClient:
        return MariaDBClient(self.connect(APPLICATION))

    def ask(self, query: str, *values: object) -> Any:
        """Run one statement; return the first column of its first row, if any."""
        with self.connect(read_timeout=30) as connection, connection.cursor() as cursor:
            cursor.execute(query, values or None)
            row = cursor.fetchone()
        return None if row is None else row[0]

    def status(self) -> dict[str, Any]:
        """Return its SHOW SLAVE STATUS; empty: it follows nobody."""
        with self.connect(cursorclass=DictCursor) as connection, connection.cursor() as cursor:
            cursor.execute("show slave status")
            return cursor.fetchone() or {}

    def written(self) -> set[int]:
        with self.connect(read_timeout=30) as connection, connection.cursor() as cursor:
            cursor.execute("select number from test.written")
            return {number for (number,) in cursor.fetchall()}

    @contextmanager
    def open_fence(self, domain: str) -> Iterator[SqlFence]:
        url = f"mariadb+pymysql://{_ADMIN}@{self.address}/zkelect"
        yield SqlFence(create_engine(url, poolclass=NullPool), domain=domain)

    def count_followers(self) -> int:
        return int(self.ask(_FOLLOWERS))

    @property
    def pid(self) -> int | None:
        return _pid_in(self.folder)

    def _answers(self) -> bool:
        with suppress(pymysql.Error), self.connect():
            return self.pid is not None
        return False

    # --- breaking it ----------------------------------------------------------------------------

    def cut_off(self) -> None:
        self.ask("stop slave io_thread")


def _pid_in(folder: Path) -> int | None:
    try:
        pid = int((folder / _PID).read_text())
    except (OSError, ValueError):
        return None
    return pid if Path(f"/proc/{pid}/exe").exists() else None


def ask_dead_switch(member: Member, deadline: float) -> Answer:
    """Fail, as a power switch does that does not answer; agents find it by its name here."""
    del deadline
    raise TimeoutError(f"the switch of {member.name} does not answer")


def _kill_member(cluster: Path, member: Member, deadline: float) -> Answer:
    """Switch a server off, as a power switch does; a means of fencing."""
    pid = _pid_in(cluster / member.name)
    if pid is None:
        return Answer.YES
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return Answer.YES
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    ended, _, _ = select.select([handle], [], [], max(deadline - now(), 0.0))
    os.close(handle)
    return Answer.YES if ended else Answer.UNKNOWN
