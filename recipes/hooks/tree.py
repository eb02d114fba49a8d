"""A hook that does not end is killed, with all that came of it.

That is its session, and whoever descends from it. Only who has left both stays: a daemon, such as
the very server that the hook has started. Each is stopped before any is killed: a child of a
parent that was killed first would have no trace of where it came from.

What runs as another user, by ``sudo``, goes on: only root may kill that.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["complain", "identify", "kill", "kill_run"]

_DYING: Final = 1.0
"""Seconds for a process to end that was killed; one that waits for a dead disk does not."""


class _Entry(NamedTuple):
    parent: int
    session: int
    born: int


def identify(pid: int) -> str:
    """Return one word that names this run of a process: its number may be given out again."""
    entry = _look_up(pid)
    return f"{pid}/{'' if entry is None else entry.born}"


def complain(spared: set[int]) -> str:
    """Return what to do about processes that were spared."""
    pids = ", ".join(f"pid {pid}" for pid in sorted(spared))
    are = "is" if len(spared) == 1 else "are"
    return f"{pids} {are} another user's; run the agent as root, or do not use sudo in hooks"


def kill_run(process: str) -> set[int]:
    """Kill that run of another one's child as :func:`kill` does, unless it has ended.

    :param process: as :func:`identify` names it.
    """
    pid = int(process.partition("/")[0])
    if _look_up(pid) is not None and identify(pid) == process:
        return kill(pid)
    return set()


def kill(root: int) -> set[int]:
    """Kill a process that has a session of its own and was not waited for, and the rest.

    :returns: who was spared, and goes on: processes of another user.
    """
    caught: dict[int, int] = {}
    try:
        while found := _members(root) - caught.keys():
            opened = _open(root, found)
            caught |= opened
            stopped = [_send(handle, signal.SIGSTOP) for handle in opened.values()]
            if opened and not any(stopped):
                break  # all that makes new ones is another user's, and may do so for ever
        spared = {pid for pid, handle in caught.items() if not _send(handle, signal.SIGKILL)}
        for pid in caught.keys() - spared:
            select.select([caught[pid]], [], [], _DYING)
    finally:
        for handle in caught.values():
            os.close(handle)
    return spared


def _open(root: int, pids: set[int]) -> dict[int, int]:
    """Return a handle on each that is there still."""
    opened: dict[int, int] = {}
    for pid in pids:
        with suppress(ProcessLookupError):
            opened[pid] = os.pidfd_open(pid)
    members = _members(root)  # again: a number may have become another's before it was opened
    for pid in opened.keys() - members:
        os.close(opened.pop(pid))
    return opened


def _send(handle: int, number: signal.Signals) -> bool:
    """Return False if it is another user's, and hears nothing; one that has ended needs not."""
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
    except PermissionError:
        return False
    return True


def _members(root: int) -> set[int]:
    entries = _look()
    found = {pid for pid, entry in entries.items() if root in (pid, entry.session)}
    while born := {pid for pid, entry in entries.items() if entry.parent in found} - found:
        found |= born
    return found


def _look() -> dict[int, _Entry]:
    """Return every process by its number."""
    pids = [int(place.name) for place in Path("/proc").iterdir() if place.name.isdecimal()]
    return {pid: entry for pid in pids if (entry := _look_up(pid)) is not None}


def _look_up(pid: int) -> _Entry | None:
    """Return what is known of it, None when it has ended; see proc_pid_stat(5)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may have anything in it
    return _Entry(parent=int(fields[1]), session=int(fields[3]), born=int(fields[19]))
