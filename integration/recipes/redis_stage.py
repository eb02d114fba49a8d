"""A stage for promotions of Redis: the one for PostgreSQL, with other servers on it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from election.waiting import until
from recipes.crew import Agent, Crew
from recipes.postgres_stage import Stage
from recipes.redis_cluster import NOWHERE, RedisCluster, RedisNode
from recipes.sampler import Sample, Sampler
from recipes.writer import Confirmed, Writer
from redis import Redis
from redis.exceptions import RedisError

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.operating import Promotion
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from zkelect.testing import LocalEnsemble

__all__ = ["RedisStage", "redis_staged"]

_PROGRAM: Final = Path(__file__).with_name("redis_agent_process.py")
_LOCK: Final = "min-replicas-to-write"
_CLOSED: Final = "2147483647"
_EVERY: Final = 0.004
_WRITE: Final = "redis.call('SADD', 'written', ARGV[1]) return redis.call('TIME')"


class RedisAgent(Agent):
    """One agent of the Redis recipe."""

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self._task).encode() + b"\n")
        self.process.stdin.flush()


class RedisCrew(Crew):
    """An agent for each server; :param place: options of their places."""

    def __init__(
        self,
        cluster: Any,
        zookeeper: LocalEnsemble,
        *,
        place: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(cluster, zookeeper, **options)
        self._place = place or {}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            session = opened.enter_context(zkelect.connect(self._zookeeper.hosts, **self._session))
            self.session = session
            self.board = Board(session, self._path)
            self.promotion = Promotion(session, self._path)
            for name, node in self.cluster.nodes.items():
                proxy = opened.enter_context(FaultProxy(self._zookeeper.hosts))
                self.proxies[name] = proxy
                log = self.cluster.folder / f"{name}.agent.log"
                agent = RedisAgent(self._task(node, proxy), log)
                self.agents[name] = agent
                opened.callback(agent.kill)
                agent.start()
            self._opened = opened.pop_all()
        return self

    def wait_following(self) -> None:
        """Wait until all servers follow the primary."""
        primary = self.wait_steady()
        others = len(self.cluster.nodes) - 1

        def all_follow() -> bool:
            info: Any = self.cluster[primary].ask("info")
            found = [info[f"slave{number}"] for number in range(info["connected_slaves"])]
            return len(found) == others and all(each["state"] == "online" for each in found)

        until(all_follow, f"all follow {primary}")

    def _task(self, node: Any, proxy: FaultProxy) -> dict[str, Any]:
        place = node.placed(**self._place)
        return {
            "hosts": proxy.hosts,
            "path": self._path,
            "session": self._session,
            "policy": self._policy,
            "agent": {"interval": 0.2},
            "member": {
                "name": node.name,
                "address": node.address,
                **self._members.get(node.name, {}),
            },
            "place": {
                "url": place.url,
                "record": str(place.record),
                "start": list(place.start),
                "min_replicas": place.min_replicas,
                "max_lag": place.max_lag,
            },
        }


class RedisSampler(Sampler):
    """Asks each server for its role and its lock, and the time, in one transaction."""

    def _work(self, node: Any) -> None:
        while not self._done.wait(_EVERY):
            with suppress(RedisError), node.connect() as client:
                self._sample(node, client)

    def _sample(self, node: Any, client: Redis) -> None:
        while not self._done.wait(_EVERY):
            asked: Any = client.pipeline(transaction=True)
            (seconds, micros), info, lock = (
                asked.time().info("replication").config_get(_LOCK).execute()
            )
            writable = info["role"] == "master" and lock[_LOCK] != _CLOSED
            self._samples.append(Sample(seconds + micros / 1e6, node.name, writable))


class RedisWriter(Writer):
    """Tries the servers in turn until one takes a write, and stays with that."""

    def __init__(self, cluster: Any, *, rate: float | None = None) -> None:
        super().__init__(cluster, rate=rate)
        self._nodes: list[RedisNode] = list(cluster.nodes.values())
        self._client: Redis | None = None

    def _write(self, number: int) -> None:
        node = self._nodes[0]
        try:
            if self._client is None:
                self._client = node.connect()
            seconds, micros = self._client.eval(_WRITE, 0, number)
        except RedisError:
            self._leave()
            self._nodes.append(self._nodes.pop(0))
            self._done.wait(0.002)
            return
        at = int(seconds) + int(micros) / 1e6
        with self._grew:
            self.confirmed.append(Confirmed(number, node.port, at, time.time()))
            self._grew.notify_all()

    def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class RedisStage(Stage):
    """What a test of a promotion of Redis has at hand."""

    cluster: Any

    def hold_back(self, name: str) -> None:
        """Let a replica receive nothing more, behind the back of its agent, which hangs."""
        self.crew.agents[name].freeze()
        node = self.cluster[name]
        node.ask("replicaof", *NOWHERE)

    def lost_rows(self) -> list[int]:
        """Return the confirmed numbers that the primary does not have."""
        confirmed = list(self.writer.confirmed)
        node = self.cluster[self.primary]
        there = node.written()
        return [row.number for row in confirmed if row.number not in there]

    def check_all_equal(self, *, without: Collection[str] = ()) -> None:
        """Every server but those ``without`` has the same numbers, once nobody writes."""
        self.writer.stop()
        node = self.cluster[self.primary]
        wanted = node.written()
        for other in self.cluster.others(self.primary):
            if other.name not in without:
                _await_same(other, wanted)


def _await_same(node: RedisNode, wanted: set[int]) -> None:
    until(lambda: node.written() == wanted, f"{node.name} has the same")


@contextmanager
def redis_staged(
    zookeeper: LocalEnsemble,
    path: str,
    *,
    rate: float | None = None,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[RedisStage]:
    """Set the stage: everybody follows, and numbers are written.

    :param rate: of the writer. :param settings: of redis.conf. :param options: of the crew.
    """
    with (
        RedisCluster(**(settings or {})) as cluster,
        RedisCrew(cluster, zookeeper, path=path, **options) as crew,
    ):
        crew.wait_following()
        servers: Any = cluster  # the stage, sampler and writer of PostgreSQL name its class
        with RedisSampler(servers) as sampler, RedisWriter(servers, rate=rate) as writer:
            stage = RedisStage(servers, crew, sampler, writer)
            writer.wait_for(20)
            until(lambda: any(each.writable for each in sampler.samples), "a sample of it")
            yield stage
