"""Ends all that was started in a folder: at the end of a block, and when the tests are killed.

A process of its own waits until the tests let it go, which the kernel does for them when they are
killed. It goes by no list, which those who are killed could not have kept: a process is of the
folder when its working directory, its output, its command line or its environment names that, or
when it descends from one that is. Whoever sits at a terminal, and looks at a log there, is not.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["reaping"]

_WITHIN: Final = 30.0
"""Seconds: an outer bound; one that waits for a dead disk does not end."""


@contextmanager
def reaping(folder: Path) -> Iterator[None]:
    """Have all that runs in this folder killed when the block ends, or this process does."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(folder)],
        stdin=subprocess.PIPE,
        cwd="/",
        start_new_session=True,  # what ends the tests' group does not end it
    ):
        yield


class _Entry(NamedTuple):
    parent: int
    terminal: bool


def reap(folder: str) -> None:
    """Kill until there is nobody: who is about to die may have started another one."""
    deadline = time.monotonic() + _WITHIN
    while (found := _members(folder)) and time.monotonic() < deadline:
        _kill(found)


def _kill(pids: Iterable[int]) -> None:
    """Stop them all before one dies: the children of a dead one cannot be told any more."""
    for pid in pids:
        _send(pid, signal.SIGSTOP)
    for pid in pids:
        _send(pid, signal.SIGKILL)
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            select.select([handle], [], [], 1.0)
            os.close(handle)


def _send(pid: int, which: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, which)


def _members(folder: str) -> set[int]:
    entries = _look()
    found = {pid for pid in entries if not entries[pid].terminal and _is_of(pid, folder)}
    while born := {pid for pid, entry in entries.items() if entry.parent in found} - found:
        found |= born
    return found - {os.getpid(), os.getppid()}


def _is_of(pid: int, folder: str) -> bool:
    place = Path(f"/proc/{pid}")
    with suppress(OSError):  # it has ended, or is somebody else's
        links = [(place / link).readlink() for link in ("cwd", "fd/1", "fd/2")]
        if any(f"{link}/".startswith(f"{folder}/") for link in links):
            return True
    with suppress(OSError):
        told = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        return folder.encode() in told
    return False


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
    if fields[0] in "ZX":
        return None
    return _Entry(parent=int(fields[1]), terminal=fields[4] != "0")


if __name__ == "__main__":
    sys.stdin.read()
    reap(sys.argv[1])
