"""Redis servers on this machine as a cluster: made, looked into, broken, removed.

The recipe starts them too, so they are daemons, children of nobody. A shell of our own ends them
when the tests are killed.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from election.waiting import until
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from servers.packages import program
from servers.process import home

from zkelect.recipes.member import Member
from zkelect.recipes.redis import Place
from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

__all__ = ["NOWHERE", "RedisCluster", "RedisNode"]

NOWHERE: Final = (LOOPBACK, "0")
_SETTINGS: Final = {
    "save": '""',
    "daemonize": "yes",
    "loglevel": "verbose",
    "repl-diskless-sync-delay": "0",
    "repl-timeout": "5",
    "enable-debug-command": "yes",
}
_REAPER: Final = """\
cat >/dev/null
for each in "$1"/*/pid; do kill -9 "$(cat "$each")" 2>/dev/null; done
"""


class RedisNode:
    """One server of the cluster."""

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        self.name = name
        self.port = port
        self.folder = folder
        self.config = folder / "redis.conf"
        self.settings: Final = {**_SETTINGS, **settings}

    # --- how the recipe sees it ---------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def placed(self, **options: Any) -> Place:
        usual = {
            "url": f"redis://{self.address}/0",
            "record": self.folder / "record",
            "start": (program("redis-server"), str(self.config)),
        }
        return Place(**{**usual, **options})

    def member(self, **options: Any) -> Member:
        return Member(name=self.name, address=self.address, **options)

    # --- looking --------------------------------------------------------------------------------

    def connect(self, **options: Any) -> Redis:
        once = Retry(NoBackoff(), 0)
        given = {"socket_timeout": 2, "decode_responses": True, "retry": once, **options}
        return Redis(host=LOOPBACK, port=self.port, **given)

    def ask(self, *words: object) -> Any:
        with self.connect(socket_timeout=30) as client:
            return client.execute_command(*words)

    def told(self, name: str) -> str:
        """Return one line of INFO."""
        return str(self.ask("info")[name])

    def written(self) -> set[int]:
        """Return the numbers that are here."""
        return {int(number) for number in self.ask("smembers", "written")}

    @property
    def pid(self) -> int | None:
        try:
            pid = int((self.folder / "pid").read_text())
        except (OSError, ValueError):
            return None
        return pid if Path(f"/proc/{pid}/exe").exists() else None

    # --- doing ------------------------------------------------------------------------------------

    def make(self) -> None:
        """Write its configuration; a start is that of a replica."""
        (self.folder / "start.conf").write_text("replicaof 127.0.0.1 0\n")
        own = {
            "include": str(self.folder / "start.conf"),
            "bind": LOOPBACK,
            "port": str(self.port),
            "dir": str(self.folder),
            "pidfile": str(self.folder / "pid"),
            "logfile": str(self.folder / "log"),
        }
        lines = {**self.settings, **own}
        self.config.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))

    def start(self, *options: str) -> None:
        """Start it as it is set up: nothing of the recipe's is added."""
        command = [program("redis-server"), str(self.config), *options]
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
        until(self._answers, f"{self.name} answers")

    def follow(self, primary: RedisNode) -> None:
        self.ask("replicaof", LOOPBACK, primary.port)
        until(lambda: self.told("master_link_status") == "up", f"{self.name} follows")

    def forget(self) -> None:
        """Delete what it has on its disk: also what it was copied from is left there."""
        (self.folder / "dump.rdb").unlink(missing_ok=True)

    def kill(self) -> None:
        """End it at once, as a power cut does; return when it has ended."""
        self.signal(signal.SIGKILL)

    def signal(self, which: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            return
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            signal.pidfd_send_signal(handle, which)
            if which is signal.SIGKILL:
                select.select([handle], [], [], 30)
            os.close(handle)

    def _answers(self) -> bool:
        try:
            return int(self.told("process_id")) == self.pid
        except RedisError:
            return False


class RedisCluster:
    """A primary and its replicas, all running, in a block.

    :param names: of the servers; the first one is the primary.
    :param settings: lines of redis.conf of all, with ``_`` for ``-``; they win.
    """

    def __init__(
        self, names: Sequence[str] = ("alpha", "beta", "gamma"), **settings: object
    ) -> None:
        self._names = names
        self._settings = {name.replace("_", "-"): str(value) for name, value in settings.items()}
        self.nodes: dict[str, RedisNode] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self.folder = opened.enter_context(home("redis"))
            self._begin_reaping(opened)
            for name in self._names:
                self._add(name, opened)
            first, *others = self.nodes.values()
            first.ask("replicaof", "no", "one")
            for node in others:
                node.follow(first)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()

    def __getitem__(self, name: str) -> RedisNode:
        return self.nodes[name]

    def others(self, name: str) -> list[RedisNode]:
        return [node for node in self.nodes.values() if node.name != name]

    def _add(self, name: str, opened: ExitStack) -> None:
        port = Port()
        opened.callback(port.release)
        folder = self.folder / name
        folder.mkdir()
        node = RedisNode(name, folder, port.number, self._settings)
        self.nodes[name] = node
        opened.callback(node.kill)
        node.make()
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
