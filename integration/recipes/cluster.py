"""Servers of one kind on this machine as a cluster: made, looked into, removed.

Recipes start servers that are daemons, children of nobody; :mod:`.reaper` ends what is left.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from recipes.node import Node
from recipes.reaper import reaping
from recipes.undertaker import Undertaker
from servers.process import as_user, home

from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Cluster", "NodeT"]

NodeT = TypeVar("NodeT", bound=Node)


class Cluster(Generic[NodeT]):
    """A primary and those that follow it, all running, in a block.

    :param kind: of its servers. :param names: of the servers; the first one is the primary.
    :param settings: lines of the configuration of all; they win.
    """

    def __init__(
        self,
        kind: type[NodeT],
        names: Sequence[str] = ("alpha", "beta", "gamma"),
        **settings: str,
    ) -> None:
        self.kind = kind
        self._names = names
        self._settings = settings
        self.nodes: dict[str, NodeT] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self.folder = opened.enter_context(home("cluster", self.kind.account))
            opened.enter_context(reaping(self.folder))
            opened.enter_context(Undertaker(self._running))
            self.kind.prepare(self.folder)
            for name in self._names:
                self._add(name, opened)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def __getitem__(self, name: str) -> NodeT:
        return self.nodes[name]

    def others(self, name: str) -> list[NodeT]:
        return [node for node in self.nodes.values() if node.name != name]

    def _running(self) -> list[int]:
        return [pid for node in list(self.nodes.values()) if (pid := node.pid) is not None]

    def _add(self, name: str, opened: ExitStack) -> None:
        port = Port()
        opened.callback(port.release)
        folder = self.folder / name
        subprocess.run(as_user(self.kind.account, ["/bin/mkdir", str(folder)]), check=True)
        node = self.kind(name, folder, port.number, self._settings)
        primary = next(iter(self.nodes.values()), None)
        self.nodes[name] = node
        opened.callback(node.kill)
        node.make(primary)
        node.start()
        node.join(primary)
