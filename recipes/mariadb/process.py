"""The server's process: found by its data directory, started, and killed when it does not obey."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.recipes.clock import now
from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.mariadb.asking import NoAnswer, connect
from zkelect.recipes.resource import NotNow
from zkelect.recipes.starting import start

if TYPE_CHECKING:
    from zkelect.recipes.mariadb.place import Place

__all__ = ["answers", "ensure_running", "find_server", "kill"]

_NAMES: Final = ("mariadbd", "mysqld")
_DYING: Final = 1.0
"""Seconds for it to end, at least; one that waits for a dead disk does not."""


def find_server(data_directory: Path) -> int | None:
    """Return the process of the server that has this data directory, None when none runs.

    A server works in its data directory (MariaDB, ``mysqld.cc``, ``my_setwd``), and no two can
    have the same one. No file of the server's is believed: it may be of an earlier run.
    """
    found = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
    return next((pid for pid in found if _serves(pid, data_directory)), None)


def kill(data_directory: Path, deadline: float) -> None:
    """End the server at once, frozen or not; return when it has ended.

    It is looked for once: one that is started meanwhile is closed.

    :raises NotNow: it was killed, and has not ended by the deadline.
    """
    pid = find_server(data_directory)
    if pid is not None:
        with suppress(ProcessLookupError):
            _end(pid, data_directory, deadline)


def answers(place: Place, deadline: float) -> bool:
    """Tell whether the server answers.

    :raises NoAnswer: it does, and lets us not in.
    """
    try:
        with connect(place, deadline):
            return True
    except NoAnswer as error:
        if error.refused:
            raise
        return False


def ensure_running(place: Place, deadline: float) -> None:
    """Start the server if it does not run.

    :raises NotNow: it does not answer by the deadline.
    """
    if answers(place, deadline):
        return
    if find_server(place.data_directory) is None:
        start(place.start, deadline)
    wait_until(lambda: answers(place, deadline), deadline, "the server answers")


def _serves(pid: int, data_directory: Path) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        if (process / "comm").read_text().strip() not in _NAMES:
            return False
        return (process / "cwd").samefile(data_directory)
    except OSError:  # it has ended, or is another user's
        return False


def _end(pid: int, data_directory: Path, deadline: float) -> None:
    """Kill it, unless its number was given out again before we had a handle on it."""
    handle = os.pidfd_open(pid)
    try:
        if _serves(pid, data_directory):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            if not select.select([handle], [], [], max(deadline - now(), _DYING))[0]:
                raise NotNow(
                    f"process {pid} of the server in {data_directory} was killed and has not"
                    " ended; it may take writes still: see what disk or mount it waits for"
                )
    finally:
        os.close(handle)
