"""Servers of one kind on this machine as a cluster: made, looked into, removed.

Recipes start servers that are daemons, children of nobody; :mod:`.reaper` ends what is left.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from recipes.background import Background
from recipes.node import Node
from recipes.reaper import reaping
from servers.process import as_user, home

from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["Cluster", "NodeT"]

_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None)

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
            opened.enter_context(_Undertaker(self.nodes.values()))
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


class _Undertaker(Background):
    """Reaps servers that have ended: the first process of some machines is slow at it."""

    def __init__(self, nodes: Collection[Node]) -> None:
        super().__init__(self._work)
        self._nodes = nodes
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def _work(self) -> None:
        pids: set[int] = set()
        while not self.done.wait(0.02):
            pids.update(pid for node in list(self._nodes) if (pid := node.pid) is not None)
            _reap(pids)


def _reap(pids: set[int]) -> None:
    """Reap those that have ended and were left to us; forget those that are gone."""
    for pid in list(pids):
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        if not Path(f"/proc/{pid}").exists():
            pids.remove(pid)
