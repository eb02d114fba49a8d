"""Processes as /proc shows them: who came of whom, and signals that hit no other."""

from __future__ import annotations

import os
import signal
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["Process", "children", "descendants", "look_up", "send"]


class Process(NamedTuple):
    """One process, told from a later one of the same number.

    :ivar group: its process group. :ivar born: ticks since the machine started.
    :ivar state: a letter of proc_pid_stat(5).
    """

    pid: int
    parent: int
    group: int
    born: int
    state: str

    @property
    def alive(self) -> bool:
        """Whether it can still do anything; a zombie only waits to be asked for its status."""
        return self.state not in "ZX"


def look_up(pid: int) -> Process | None:
    """Return the process of that number, None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may have anything in it
    return Process(
        pid, parent=int(fields[1]), group=int(fields[2]), born=int(fields[19]), state=fields[0]
    )


def children(pid: int) -> set[int]:
    """Return the children of all threads of a process."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # that thread has just ended
            found.update(map(int, task.read_text().split()))
    return found


def descendants(pid: int, spared: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Return who came of a process, parents before children; who forks meanwhile may be missed.

    :param spared: left out, with all that came of them.
    """
    found = {pid: None}  # in order
    asked = deque([pid])
    while asked:
        born = dict.fromkeys(sorted(children(asked.popleft()) - spared - found.keys()))
        found |= born
        asked.extend(born)
    return tuple(found)[1:]


def send(process: Process, number: signal.Signals) -> bool:
    """Send a signal to that process and to no other; False: it is gone, or not ours to signal."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        found = look_up(process.pid)  # read after it was opened: the number is not free since
        if found is None or found.born != process.born:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
