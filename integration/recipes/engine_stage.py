"""Agents of a cluster in memory, each with a session of its own behind a forwarder of its own."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any, Self

from election.waiting import WITHIN, until
from recipes.memory_cluster import Cluster, MemoryResource

import zkelect
from zkelect.recipes.agent import Agent
from zkelect.recipes.choice import Policy
from zkelect.recipes.operating import ClusterStatus, Promotion
from zkelect.recipes.page import Phase
from zkelect.testing import Forwarder

__all__ = ["Host", "Stage"]

_T = 4.0
_TICK = 0.2


class Host:
    """One agent on its thread, which can be cut off, or stopped."""

    def __init__(self, stage: Stage, name: str, **options: Any) -> None:
        self.name = name
        self.resource = MemoryResource(stage.cluster, name, **options)
        self.forwarder = Forwarder(stage.hosts)
        self.forwarder.__enter__()
        self.session = zkelect.connect(self.forwarder.hosts, session_timeout=_T, tick_time=_TICK)
        self.agent = Agent(
            self.session, stage.path, self.resource, policy=stage.policy, interval=0.1
        )
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.agent.run, args=(self.stop,), name=name)
        self.thread.start()

    def leave(self) -> None:
        """Stop in good order."""
        self.stop.set()
        self.thread.join(WITHIN)
        assert not self.thread.is_alive()
        self.session.close()
        self.forwarder.__exit__(None, None, None)


class Stage:
    """A cluster with one agent for each of its servers, the first of which is the primary."""

    def __init__(
        self, hosts: str, path: str, *names: str, policy: Policy, priorities: dict[str, int]
    ) -> None:
        self.hosts, self.path, self.policy = hosts, path, policy
        self.cluster = Cluster(*names)
        self._opened = ExitStack()
        session = zkelect.connect(hosts, session_timeout=_T, tick_time=_TICK)
        self.session = self._opened.enter_context(session)
        self.promotion = Promotion(self.session, path, policy=policy)
        self.crew = {name: Host(self, name, priority=priorities.get(name, 0)) for name in names}

    def __enter__(self) -> Self:
        try:
            self.until_primary(next(iter(self.crew)))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in self.crew.values():
            host.forwarder.heal()
            host.stop.set()
        for host in self.crew.values():
            host.leave()
        self._opened.close()

    def status(self) -> ClusterStatus:
        return self.promotion.status()

    def until_primary(self, name: str) -> None:
        """Wait until that one is the primary, takes writes, and a fail-over may begin again."""

        def is_so() -> bool:
            page = self.status().page
            steady = page is not None and page.phase is Phase.STEADY and not page.cooling
            return steady and self.cluster.writable_names() == [name]

        until(is_so, f"{name} was the primary")

    def until_follow(self, primary: str, *names: str) -> None:
        servers = self.cluster.servers
        until(
            lambda: all(servers[name].following == primary for name in names),
            f"{names} followed {primary}",
        )

    def until_waits(self, reason: str) -> None:
        until(lambda: any(reason in each.reason for each in self.status().verdicts), reason)

    def serials(self) -> int:
        page = self.status().page
        return 0 if page is None else page.serial
