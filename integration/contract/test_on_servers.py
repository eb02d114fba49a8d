"""The contract, kept by a real server; tests/contract keeps it in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from contract.stories import STORIES, Story
from contract.world import SESSION_TIMEOUT, TICK
from kazoo.client import KazooClient

import zkelect
from zkelect.testing import Forwarder, LocalEnsemble

if TYPE_CHECKING:
    from zkelect.testing.conversation import Direction


class Servers:
    """The world of a story, on real servers: each session behind a forwarder of its own."""

    def __init__(
        self, address: str, path: str, until: Callable[[Callable[[], object], str], None]
    ) -> None:
        self.path = path
        self._address = address
        self._stack = ExitStack()
        self._forwarders: dict[zkelect.Session, Forwarder] = {}
        self.until = until

    def connect(self) -> zkelect.Session:
        forwarder = self._stack.enter_context(Forwarder(self._address))
        session = self._stack.enter_context(
            zkelect.connect(forwarder.hosts, session_timeout=SESSION_TIMEOUT, tick_time=TICK)
        )
        self._forwarders[session] = forwarder
        return session

    def quiet(self) -> None:
        """Nothing to do: what is under way comes by itself."""

    def reconnect(self, session: zkelect.Session) -> None:
        before = session.connected_at
        session.link.shut()
        self.until(lambda: session.connected and session.connected_at != before, "it reconnected")

    def cut(self, session: zkelect.Session, *directions: Direction) -> None:
        for direction in directions or ("requests", "replies"):
            self._forwarders[session].cut(direction)

    def heal(self, session: zkelect.Session) -> None:
        self._forwarders[session].heal()

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def world(
    request: pytest.FixtureRequest,
    zookeeper: LocalEnsemble,
    eventually: Callable[[Callable[[], object], str], None],
) -> Iterator[Servers]:
    path = "/contract-" + re.sub(r"\W+", "-", request.node.name)
    kazoo = KazooClient(zookeeper.hosts)
    kazoo.start()
    kazoo.create(path)
    kazoo.stop()
    kazoo.close()
    made = Servers(zookeeper.servers[0].address, path, eventually)
    yield made
    made.close()


@pytest.mark.parametrize("tell", STORIES.values(), ids=STORIES)
def test_story(tell: Story, world: Servers) -> None:
    tell(world)
