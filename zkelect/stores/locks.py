"""Who holds a lock on a file, as far as the system tells."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["lockers", "told"]


def lockers(path: Path, kind: str, mode: str, span: range | None = None) -> set[int]:
    """Return the processes that hold such a lock on this file; none where nothing is told.

    Read from /proc/locks: to open the file and ask fcntl would, at the close, drop the
    record locks that this process has on it (fcntl(2), "Record locks"). A process of another
    PID namespace, such as another container's, is not shown.

    :param kind: "POSIX", a record lock, or "FLOCK". :param mode: "READ" or "WRITE".
    :param span: of the file's bytes; None: any.
    """
    try:
        found = path.stat()
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return set()
    file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    locks = (fields for line in lines if len(fields := line.split()) == 8)  # 9: who waits
    return {
        int(pid)
        for _, type_, _, held, pid, where, start, end in locks
        if (type_, held, where) == (kind, mode, file) and int(pid) > 0
        if span is None or (int(start) < span.stop and (end == "EOF" or int(end) >= span.start))
    }


def told(pids: set[int]) -> str:
    """Name processes in a message."""
    if not pids:
        return "a process that could not be told"
    mine = " (this one)" if os.getpid() in pids else ""
    return f"process {', '.join(map(str, sorted(pids)))}{mine}"
