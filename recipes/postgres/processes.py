"""The processes of a server, by what the kernel says of them: found, and killed.

Each of them works in the data directory, the first one and all that it has made. That is true
also of those that have outlived the first one, and when ``postmaster.pid`` is gone.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.recipes.clock import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["find_roots", "kill_tree", "works_in"]

_NAMES: Final = ("postgres", "postmaster")
_DYING: Final = 5.0
"""Seconds for processes to end that were killed. One that waits for a dead disk does not, but
takes no step more."""
_POLL_EVERY: Final = 0.002


def works_in(pid: int, home: Path) -> bool:
    """Tell whether this process works in that directory; one that has ended does not."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == home
    except OSError:
        return False


def find_roots(home: Path) -> list[int]:
    """Return the servers of a data directory: those of its processes that no other one made."""
    ours = {pid for pid in _all_pids() if works_in(pid, home) and _read(pid, "comm") in _NAMES}
    return sorted(pid for pid in ours if _parent(pid) not in ours)


def kill_tree(home: Path, first: int | None) -> None:
    """Kill every process of the server; return when they have ended.

    :param first: whom to look at before all processes are looked through, which takes a moment.

    Again until none is found: the kernel's list of children may lack some when one of them
    ends meanwhile (proc(5), ``/proc/pid/task/tid/children``), and those live on as roots.
    """
    killed: set[int] = set()
    if first is not None and works_in(first, home):
        _kill(first)
        killed.add(first)
    while roots := set(find_roots(home)) - killed:
        for pid in roots:
            _kill(pid)
        killed |= roots


def _kill(root: int) -> None:
    """Kill a root and its children. There may be more of them than we may open files.

    As long as it is stopped it makes no new one, and reaps none: no number is another's.
    """
    with suppress(ProcessLookupError):
        os.kill(root, signal.SIGSTOP)
    children = _children(root)
    _send(children)
    _wait(lambda: not any(map(_runs, children)))
    _send([root])
    _wait(lambda: not _runs(root))


def _send(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _wait(ended: Callable[[], bool]) -> None:
    until = now() + _DYING
    while not ended() and now() < until:
        time.sleep(_POLL_EVERY)


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208  names


def _children(pid: int) -> list[int]:
    return [int(child) for child in _read(pid, f"task/{pid}/children").split()]


def _parent(pid: int) -> int | None:
    fields = _status(pid)
    return int(fields[1]) if fields else None


def _runs(pid: int) -> bool:
    """Tell whether it is neither gone nor a zombie."""
    fields = _status(pid)
    return bool(fields) and fields[0] not in "ZX"


def _status(pid: int) -> list[str]:
    """Return state, parent and so on, nothing when it is gone; see proc_pid_stat(5)."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace").strip()
    except OSError:
        return ""
