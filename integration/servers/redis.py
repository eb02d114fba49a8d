"""A Redis of our own, and its replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from servers.packages import program
from servers.process import Server, ServerProcess, home

from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

__all__ = ["RedisServer"]

_WITHIN: Final = 30.0
_QUICK: Final = {"save": "", "appendonly": "no", "repl-diskless-sync-delay": "0"}


class RedisServer(Server):
    """A redis-server on a free loopback port; it keeps nothing on the disk unless told to.

    :param options: lines of redis.conf, with ``_`` for ``-``; they win.
    """

    def __init__(self, **options: object) -> None:
        given = {name.replace("_", "-"): str(value) for name, value in options.items()}
        self._options = {**_QUICK, **given}

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self.port}/0"

    @property
    def port(self) -> int:
        return self._port.number

    @property
    def socket(self) -> Path:
        """Its Unix socket."""
        return self._directory / "socket"

    def client(self, **options: Any) -> Redis:
        """Make a client that asks once; close it."""
        once = Retry(NoBackoff(), 0)
        return Redis(host=LOOPBACK, port=self.port, retry=once, socket_timeout=_WITHIN, **options)

    def ask(self, *words: str) -> Any:
        """Run one command, as the operator does, and return its reply as text."""
        with self.client(decode_responses=True) as client:
            return client.execute_command(*words)

    def told(self, section: str, name: str) -> str:
        """Return one line of INFO."""
        with self.client() as client:
            return str(client.info(section).get(name))

    # --- its life ----------------------------------------------------------------------------

    def kill(self) -> None:
        """End it as a crash does (SIGKILL)."""
        self.process.kill()

    def start(self) -> None:
        """Start it again, on the same port and with what it has kept."""
        self.process.start(self._answers)

    # --- replication -------------------------------------------------------------------------

    def follow(self, primary: RedisServer) -> None:
        """Become a replica, and wait until what the primary has now is here."""
        self.ask("replicaof", LOOPBACK, str(primary.port))
        self.process.wait(
            "followed", lambda: self.told("replication", "master_link_status") == "up"
        )

    def promote(self) -> None:
        """Become a primary with what is here."""
        self.ask("replicaof", "no", "one")

    def wait_replayed(self, primary: RedisServer) -> None:
        """Wait until what the primary has now is here."""
        offset = int(primary.told("replication", "master_repl_offset"))
        self.process.wait(
            "replayed", lambda: int(self.told("replication", "slave_repl_offset")) >= offset
        )

    # --- details -----------------------------------------------------------------------------

    def _open(self, opened: ExitStack) -> None:
        self._directory = opened.enter_context(home("redis"))
        self._port = Port()
        opened.callback(self._port.release)
        self.process = ServerProcess(self._command(), directory=self._directory)
        opened.callback(self.process.kill)
        self.start()

    def _command(self) -> list[str]:
        fixed = {"bind": LOOPBACK, "port": self.port, "unixsocket": self.socket}
        lines = {**self._options, **fixed, "dir": self._directory}
        options = [word for name, value in lines.items() for word in (f"--{name}", str(value))]
        return [program("redis-server"), *options]

    def _answers(self) -> bool:
        try:
            return self.told("server", "process_id") == str(self.process.pid)
        except RedisError:
            return False
