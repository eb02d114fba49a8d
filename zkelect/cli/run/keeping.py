"""The keeper, seen from the elector: to start it, to speak to it, to do its work."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import click

from zkelect.cli.exits import LOST
from zkelect.cli.run import keeper
from zkelect.cli.run.keeper.cgroups import Cgroup
from zkelect.cli.run.keeper.kernel import adopt_orphans
from zkelect.cli.run.keeper.messages import Channel, Message, Ready
from zkelect.cli.run.keeper.processes import children
from zkelect.cli.run.keeper.tree import Tree, reap

__all__ = ["KeeperLost", "KeeperProcess"]

_PROGRAM: Final = str(Path(keeper.__file__).parent)
_START_TIMEOUT: Final = 30.0
_AGAIN: Final = 0.05
_PATIENCE: Final = 1.0
"""Seconds that those who were killed may take to die before somebody is told."""


class KeeperLost(click.ClickException):
    """The keeper has ended, or does nothing any more: nobody is led without one."""

    exit_code = LOST


class KeeperProcess:
    """A keeper, from its start to the end of the block.

    Make it before there are threads, and before signals are blocked: the command inherits what
    the keeper does. Leaving the block ends the keeper, which kills what it has started.

    :param command: what it is to start. :param folder: is removed when the keeper ends.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._spared: Final = frozenset(children(os.getpid()))  # of who became this process
        self._cgroup: Cgroup | None = None
        adopt_orphans()  # of a keeper that is killed
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            its.set_inheritable(True)
            arguments = (str(its.fileno()), str(folder), *command)
            self._process: Final = subprocess.Popen(
                [sys.executable, "-I", "-S", _PROGRAM, *arguments],
                close_fds=False,  # files that our caller has opened are for the command
            )
        self._channel: Final = Channel(ours)

    def __enter__(self) -> Self:
        """Wait until it is there.

        :raises KeeperLost: it is not.
        """
        ready = self.wait(_START_TIMEOUT)
        if not isinstance(ready, Ready):
            self._process.kill()
            raise KeeperLost("the keeper did not start")
        self._cgroup = Cgroup(Path(ready.cgroup)) if ready.cgroup else None
        self.safety: str = ready.cgroup or f"no control group: {ready.why}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()
        self._process.wait()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, order: Message) -> bool:
        """Give it an order; False: it cannot be given now.

        :raises KeeperLost: the keeper has ended.
        """
        sent = self._channel.send(order)
        self._ensure_there()
        return sent

    def wait(self, timeout: float) -> Message | None:
        """Wait for what it tells, at most so many seconds.

        :raises KeeperLost: the keeper has ended.
        """
        select.select([self._channel], [], [], max(timeout, 0.0))
        told = self._channel.receive()
        self._ensure_there()
        return told

    def wake(self) -> None:
        """Let it go on if somebody has stopped it: it is here to be awake."""
        if os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG) is not None:
            self._process.send_signal(signal.SIGCONT)

    def kill_tree(self) -> tuple[int, ...]:
        """Kill all that came of the command, beside the keeper; return who is left."""
        tree = Tree(self.pid, self._cgroup)
        tree.kill()
        return tree.survivors()

    def take_over(self, complain: Callable[[tuple[int, ...]], None]) -> None:
        """End the keeper and kill all that came of the command; return when all are dead.

        Those whom the keeper leaves behind are children of this process then.

        :param complain: told of those who live on: stuck in the kernel, or not ours to kill.
        """
        self._process.kill()
        self._process.wait()
        tree = Tree(os.getpid(), self._cgroup, self._spared)
        complain_at = time.monotonic() + _PATIENCE
        while not self._bury(tree):
            tree.kill()
            time.sleep(_AGAIN)
            if time.monotonic() > complain_at and (living := tree.survivors()):
                complain(living)
        if self._cgroup is not None:
            self._cgroup.remove()

    def _bury(self, tree: Tree) -> bool:
        for _ in reap():
            pass
        return tree.dead

    def _ensure_there(self) -> None:
        if self._channel.closed:
            raise KeeperLost("the keeper has ended, and the command with it")
