"""A Redis server of the stage, and a connection to it."""

from __future__ import annotations

import subprocess
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from election.waiting import until
from recipes.node import Client, Node
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from servers.packages import program

from zkelect.recipes.redis import Place, RedisServer
from zkelect.stores import RedisFence
from zkelect.testing.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["RedisNode"]

_NOWHERE: Final = (LOOPBACK, "0")
_SETTINGS: Final = {
    "save": '""',
    "daemonize": "yes",
    "loglevel": "verbose",
    "repl-diskless-sync-delay": "0",
    "repl-timeout": "5",
    "enable-debug-command": "yes",
}
_LOCK: Final = "min-replicas-to-write"
_CLOSED: Final = "2147483647"
_WRITE: Final = "redis.call('SADD', 'written', ARGV[1]) return redis.call('TIME')"


class RedisClient(Client):
    """One connection to one server."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def probe(self) -> tuple[float, bool]:
        """Ask for its role and its lock, and the time, in one transaction."""
        asked: Any = self._client.pipeline(transaction=True)
        time, info, lock = asked.time().info("replication").config_get(_LOCK).execute()
        return _seconds(time), info["role"] == "master" and lock[_LOCK] != _CLOSED

    def write(self, number: int) -> float:
        return _seconds(self._client.eval(_WRITE, 0, number))

    def close(self) -> None:
        self._client.close()


def _seconds(told: Any) -> float:
    seconds, micros = told
    return int(seconds) + int(micros) / 1e6


class RedisNode(Node):
    """One server of the cluster.

    :param settings: with ``_`` for ``-``.
    """

    resource = RedisServer
    errors = (RedisError,)
    durable = False  # nothing is saved, and so nothing is there after a kill
    safest: ClassVar[dict[str, Any]] = {"place": {"min_replicas": 1, "max_lag": 2}}

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        given = {name.replace("_", "-"): value for name, value in settings.items()}
        super().__init__(name, folder, port, {**_SETTINGS, **given})
        self.config = folder / "redis.conf"

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

    def client(self) -> RedisClient:
        return RedisClient(self.connect())

    def count_followers(self) -> int:
        info: Any = self.ask("info", "replication")
        found = [info[f"slave{number}"] for number in range(info["connected_slaves"])]
        return sum(each["state"] == "online" for each in found)

    def written(self) -> set[int]:
        return {int(number) for number in self.ask("smembers", "written")}

    @contextmanager
    def open_fence(self, domain: str) -> Iterator[RedisFence]:
        with closing(RedisFence(f"redis://{self.address}/0", domain=domain)) as fence:
            yield fence

    # --- doing ------------------------------------------------------------------------------------

    def make(self, primary: RedisNode | None = None) -> None:
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
        command = [program("redis-server"), str(self.config), *options]
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
        until(self._answers, f"{self.name} answers")

    def join(self, primary: RedisNode | None) -> None:
        if primary is None:
            self.ask("replicaof", "no", "one")
        else:
            self.follow(primary)

    def cut_off(self) -> None:
        self.ask("replicaof", *_NOWHERE)

    def follow(self, primary: RedisNode) -> None:
        self.ask("replicaof", LOOPBACK, primary.port)
        until(lambda: self.told("master_link_status") == "up", f"{self.name} follows")

    def forget(self) -> None:
        """Delete what it has on its disk: also what it was copied from is left there."""
        (self.folder / "dump.rdb").unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            return int(self.told("process_id")) == self.pid
        except RedisError:
            return False
