"""All that came of the command, wherever it went."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Final

from zkelect.cli.run.keeper.cgroups import Cgroup
from zkelect.cli.run.keeper.processes import Process, children, descendants, look_up, send

__all__ = ["Tree", "reap"]


class Tree:
    """The descendants of a process, and who is in the control group.

    The process must adopt orphans (:func:`~zkelect.cli.run.keeper.kernel.adopt_orphans`): then
    all that came of the command are its descendants for ever.

    :param root: the process, not itself of the tree.
    :param cgroup: where the command was started; None: there is none.
    :param spared: children of the root that are not the command's.
    """

    def __init__(
        self, root: int, cgroup: Cgroup | None, spared: frozenset[int] = frozenset()
    ) -> None:
        self._root: Final = root
        self._cgroup: Final = cgroup
        self._spared: Final = spared

    def signal(self, number: signal.Signals, heard_by: int | None = None) -> None:
        """Send a signal to all of them, parents first.

        A shell that waits for its child would otherwise see that end, and end well itself.

        :param heard_by: a process group that has had it already.
        """
        for process in self._living():
            if process.group != heard_by:
                send(process, number)

    def terminate(self) -> None:
        """Ask all of them to end, also those that are stopped: they hear it when they go on."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill all of them that are there now; call it until nothing is left."""
        if self._cgroup is not None:
            self._cgroup.kill()
        self.signal(signal.SIGKILL)

    @property
    def dead(self) -> bool:
        """Whether nothing of it is left; only for the root itself, when it has reaped.

        Who has no child has no descendant: orphans come to the root before their parent can be
        reaped. To list them all would not tell: who is handed on meanwhile is missed.
        """
        if self._cgroup is not None and self._cgroup.populated:
            return False
        return not children(self._root) - self._spared if self._spared else _is_childless()

    def survivors(self) -> tuple[int, ...]:
        """Return who is alive."""
        return tuple(sorted(process.pid for process in self._living()))

    def _living(self) -> list[Process]:
        """Look each one up, then look who is there: a number may have become another's between."""
        found = [look_up(pid) for pid in self._members()]
        members = self._members()
        return [each for each in found if each is not None and each.alive and each.pid in members]

    def _members(self) -> dict[int, None]:
        """Return their process ids, in order."""
        found = dict.fromkeys(descendants(self._root, self._spared))
        return found if self._cgroup is None else found | dict.fromkeys(self._cgroup.members())


def reap() -> Iterator[tuple[int, int]]:
    """Take the status of each child of ours that has ended: its number and its exit status."""
    while (ended := _ended_child()) is not None:
        pid, status = ended
        code = os.waitstatus_to_exitcode(status)
        yield pid, code if code >= 0 else 128 - code


def _is_childless() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _ended_child() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None
