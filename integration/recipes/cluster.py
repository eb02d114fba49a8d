"""PostgreSQL servers on this machine as a cluster: made, looked into, broken, removed.

pg_ctl starts them, as the recipe does, so they are children of nobody. A shell of our own ends
them when the tests are killed.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg
from servers.packages import program
from servers.process import as_user, home

from zkelect.recipes.member import Member
from zkelect.recipes.postgres import Place
from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

__all__ = ["Cluster", "Node"]

_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None)
_ACCOUNT: Final = "postgres"
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
_REAPER: Final = """\
cat >/dev/null
for each in "$1"/*/data/postmaster.pid; do kill -9 "$(head -n 1 "$each")" 2>/dev/null; done
"""


class Node:
    """One server of the cluster."""

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        self.name = name
        self.port = port
        self.folder = folder
        self.data = folder / "data"
        self.settings: Final = {**_SETTINGS, **settings}

    def __repr__(self) -> str:
        return f"<{self.name} at {self.port}>"

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

    def member(self, **options: Any) -> Member:
        return Member(name=self.name, address=self.address, **options)

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

    @property
    def postmaster(self) -> int | None:
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None
        return pid if Path(f"/proc/{pid}/exe").exists() else None

    @property
    def processes(self) -> list[int]:
        pid = self.postmaster
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

    def make(self, primary: Node | None = None) -> None:
        """Make its data: new ones, or a copy of the primary's."""
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
        """Start it as its data are: nothing of the recipe's is added."""
        log = str(self.folder / "data.log")
        self.run("pg_ctl", "start", "-w", "-t", "60", "-l", log, *options)

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "-w", "-m", "fast")

    def kill(self) -> None:
        """End all its processes at once, as a power cut does; return when they have ended."""
        self.signal(signal.SIGSTOP)
        processes = self.processes
        self.signal(signal.SIGKILL)
        for pid in processes:
            _wait_ended(pid)

    def signal(self, which: signal.Signals) -> None:
        """Send a signal to each process of it."""
        for pid in self.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, which)

    def reap(self) -> None:
        """Reap its last process, if that has ended and was left to us."""
        with suppress(OSError, ValueError):
            os.waitpid(
                int((self.data / "postmaster.pid").read_text().split("\n", 1)[0]), os.WNOHANG
            )

    def run(self, name: str, *arguments: str) -> str:
        command = as_user(_ACCOUNT, [program(name), "-D", str(self.data), *arguments])
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


class Cluster:
    """A primary and its standbys, all running, in a block.

    :param names: of the servers; the first one is the primary.
    :param settings: lines of postgresql.conf of all; they win.
    """

    def __init__(self, names: Sequence[str] = ("alpha", "beta", "gamma"), **settings: str) -> None:
        self._names = names
        self._settings = settings
        self.nodes: dict[str, Node] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self.folder = opened.enter_context(home("cluster", _ACCOUNT))
            self._begin_reaping(opened)
            opened.enter_context(_undertaken(self.nodes))
            for name in self._names:
                self._add(name, opened)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def others(self, name: str) -> list[Node]:
        return [node for node in self.nodes.values() if node.name != name]

    def _add(self, name: str, opened: ExitStack) -> None:
        port = Port()
        opened.callback(port.release)
        folder = self.folder / name
        subprocess.run(as_user(_ACCOUNT, ["/bin/mkdir", str(folder)]), check=True)
        node = Node(name, folder, port.number, self._settings)
        primary = next(iter(self.nodes.values()), None)
        self.nodes[name] = node
        opened.callback(node.kill)
        node.make(primary)
        node.start()

    def _begin_reaping(self, opened: ExitStack) -> None:
        reaper = subprocess.Popen(
            ["/bin/sh", "-c", _REAPER, "reaper", str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        assert reaper.stdin is not None
        opened.callback(reaper.wait)
        opened.callback(reaper.stdin.close)


@contextmanager
def _undertaken(nodes: Mapping[str, Node]) -> Iterator[None]:
    """Reap servers that have ended: the first process of some machines is slow at it."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.02):
            for node in list(nodes.values()):
                node.reap()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _wait_ended(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        select.select([handle], [], [], 30)
        os.close(handle)
