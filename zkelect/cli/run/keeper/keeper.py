"""The keeper's one loop: orders, children, deadlines, on one thread.

What is due is done when it is due, whoever else sleeps. If anything fails here this process
ends, the kernel kills the command (:func:`~zkelect.cli.run.keeper.kernel.die_with_parent`), and
the elector, who inherits the rest of the tree, kills that.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from zkelect.cli.run.keeper.cgroups import Cgroup
from zkelect.cli.run.keeper.kernel import Alarm, adopt_orphans, boottime
from zkelect.cli.run.keeper.messages import (
    Cause,
    Channel,
    Dead,
    End,
    Ending,
    Hold,
    Message,
    Pass,
    Ready,
    Refused,
    Start,
    Started,
)
from zkelect.cli.run.keeper.plan import Act, Plan
from zkelect.cli.run.keeper.starting import Inheritance, failure, start
from zkelect.cli.run.keeper.tree import Tree, reap

__all__ = ["main"]

_DEAF_TO: Final = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM),
)
"""Meant for the elector or the command, when a whole group or service is signalled."""


class Keeper:
    """One command, started and ended as often as the elector says, one at a time."""

    def __init__(self, channel: Channel, command: Sequence[str], inheritance: Inheritance) -> None:
        self._channel: Final = channel
        self._command: Final = command
        self._inheritance: Final = inheritance
        self._wake: Final = _wake_on_children()
        self._alarm: Final = Alarm()
        self._poll: Final = select.poll()
        for descriptor in (channel.fileno(), self._wake, self._alarm.descriptor):
            self._poll.register(descriptor, select.POLLIN)
        self._cgroup, why = _make_cgroup()
        self._tree: Final = Tree(os.getpid(), self._cgroup)
        self._plan: Plan | None = None
        self._pid = 0
        self._starting: int | None = None
        channel.send(Ready("" if self._cgroup is None else str(self._cgroup.path), why))

    def keep(self) -> None:
        """Do what is due until the elector is gone, and nothing of the command is left."""
        while self._plan is not None or not self._channel.closed:
            self._alarm.set(None if self._plan is None else self._plan.next)
            ready = {descriptor for descriptor, _ in self._poll.poll()}
            if self._channel.fileno() in ready:
                self._obey()
            self._look(ready)
            self._act(boottime())
        if self._cgroup is not None:
            self._cgroup.remove()

    def _obey(self) -> None:
        """Take all orders that are there; the elector's end is one, too."""
        while (order := self._channel.receive()) is not None:
            self._take(order)
        if self._channel.closed:
            self._poll.unregister(self._channel.fileno())
            self._end(Cause.ORDERED, at_once=True)

    def _take(self, order: Message) -> None:
        match order:
            case Start():
                self._start(order)
            case Hold(deadline) if self._plan is not None:
                self._plan = self._plan.renewed(deadline)
            case Pass(number, typed) if self._plan is not None:
                heard_by = self._inheritance.group if typed else None
                self._tree.signal(signal.Signals(number), heard_by)
            case End(at_once):
                self._end(Cause.ORDERED, at_once=at_once)

    def _start(self, order: Start) -> None:
        plan = Plan(order.grace, order.deadline)
        if plan.due(boottime()) is not Act.NOTHING:  # the elector slept before it gave the order
            self._channel.send(Ending(Cause.LATE))
            self._channel.send(Dead())
            return
        self._plan = plan
        self._pid, self._starting = start(
            self._command, {**os.environ, **order.environment}, self._inheritance, self._cgroup
        )
        self._poll.register(self._starting, select.POLLIN)

    def _look(self, ready: set[int]) -> None:
        """See what has become of the children."""
        if self._starting is not None and self._starting in ready:
            self._tell_start(self._starting)
        if self._wake in ready:
            with suppress(BlockingIOError):
                os.read(self._wake, 512)
        for pid, status in reap():
            if pid == self._pid:
                self._end(Cause.EXITED, status)
        if self._plan is not None and self._starting is None and self._tree.dead:
            self._plan = None
            self._channel.send(Dead())

    def _tell_start(self, descriptor: int) -> None:
        errno = failure(os.read(descriptor, 64))
        self._poll.unregister(descriptor)
        os.close(descriptor)
        self._starting = None
        self._channel.send(Started(self._pid) if errno is None else Refused(errno))

    def _end(self, cause: Cause, status: int = 0, *, at_once: bool = False) -> None:
        if self._plan is None:
            return
        if self._plan.asked is None:
            self._channel.send(Ending(cause, status))
        self._plan = self._plan.ended(boottime(), at_once=at_once)

    def _act(self, now: float) -> None:
        if self._plan is None or (act := self._plan.due(now)) is Act.NOTHING:
            return
        self._end(Cause.LATE)  # unless it has begun
        if act is Act.KILL:
            self._tree.kill()
        else:
            self._tree.terminate()
        self._plan = self._plan.did(act, now)


def _wake_on_children() -> int:
    """Return a file that is readable when a child has ended."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def _make_cgroup() -> tuple[Cgroup | None, str]:
    try:
        return Cgroup.make(f"zkelect-run-{os.getpid()}-{os.urandom(4).hex()}"), ""
    except OSError as error:
        return None, str(error)


def main(arguments: Sequence[str]) -> None:
    """Be the keeper of one elector.

    :param arguments: the descriptor of our end of the socket, a folder to remove at the end, and
        the command.
    """
    descriptor, folder, *command = arguments
    end = socket.socket(fileno=int(descriptor))
    end.set_inheritable(False)
    inheritance = Inheritance.here()
    for number in _DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    os.setpgid(0, 0)  # the terminal's keys are for the elector and the command
    adopt_orphans()
    Keeper(Channel(end), command, inheritance).keep()
    shutil.rmtree(folder, ignore_errors=True)
