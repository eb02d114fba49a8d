"""Workers in memory: each a session and a group, and what its callbacks were told."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any, Final, Self

import zkelect
from zkelect.testing import FakeEnsemble

__all__ = ["ROOT", "TICK", "Crew", "T", "Worker"]

TICK: Final = 0.2
T: Final = 2.0
ROOT: Final = "/shards"
_SETTLED: Final = 30 * T


class Worker:
    """One process.

    :ivar leading: what its callbacks may think it leads now. :ivar most: how many at an instant.
    :ivar told: ("elected", name), and so on, in order.
    """

    def __init__(self, fake: FakeEnsemble, name: str, **options: Any) -> None:
        self.fake = fake
        self.session = fake.connect(session_timeout=T, tick_time=TICK)
        self.group = zkelect.ElectionGroup(self.session, ROOT, name=name, **options)
        self.leading: set[zkelect.Leadership] = set()
        self.terms: list[zkelect.Leadership] = []
        self.told: list[tuple[str, str]] = []
        self.most = 0
        self._opened = ExitStack()
        self._opened.enter_context(self.group.listen(self))

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.told.append(("elected", self.group.name_of(leadership)))
        self.terms.append(leadership)
        self.leading.add(leadership)
        self.most = max(self.most, len(self.leading))

    def suspended(self, leadership: zkelect.Leadership) -> None:
        assert leadership in self.leading

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self.told.append(("deposed", self.group.name_of(leadership)))
        self.leading.remove(leadership)

    def add(self, *names: str) -> Self:
        self.group.add(*names)
        return self

    @property
    def led(self) -> set[str]:
        """The elections it leads."""
        return set(self.group.leaderships)

    @property
    def stood(self) -> set[str]:
        """The elections in which it has a znode."""
        assert self.session.session_id is not None
        return {path.split("/")[2] for path in self.fake.owned(self.session.session_id)}


class Crew:
    """All the workers there are."""

    def __init__(self, fake: FakeEnsemble) -> None:
        self.fake = fake
        self.workers: list[Worker] = []

    def hire(self, name: str, **options: Any) -> Worker:
        """Connect a worker; it has no election yet."""
        self.workers.append(Worker(self.fake, name, **options))
        return self.workers[-1]

    def settle(self) -> None:
        """Let so much time pass that every queue was read several times."""
        self.fake.advance(_SETTLED)

    @property
    def led(self) -> dict[str, Worker]:
        """Who leads which election now."""
        return {name: worker for worker in self.workers for name in worker.led}

    def history(self, name: str) -> list[dict[str, Any]]:
        """The terms of an election that have ended, as it is written."""
        znode = self.fake.znode(f"{ROOT}/{name}.zkelect/history")
        assert znode is not None
        terms: list[dict[str, Any]] = json.loads(znode.data or b"[]")
        return terms
