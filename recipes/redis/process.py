"""The server's process: started, and killed when it does not obey."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.redis.asking import NoAnswer
from zkelect.recipes.redis.state import State, read_state
from zkelect.recipes.resource import NotNow
from zkelect.recipes.starting import start

if TYPE_CHECKING:
    from zkelect.recipes.redis.place import Place

__all__ = ["answers", "ensure_running", "find", "identify", "kill", "lives"]

_DYING: Final = 5.0
"""Seconds for a process to end that was killed; one that waits for a dead disk does not."""


def answers(place: Place, deadline: float) -> bool:
    """Tell whether the server answers."""
    try:
        read_state(place.url, deadline)
    except NoAnswer:
        return False
    return True


def ensure_running(place: Place, deadline: float) -> State:
    """Start the server if it does not answer; return how it stands, be it loading.

    :raises NotNow: it does not answer by the deadline.
    """
    if not answers(place, deadline):
        start(place.start, deadline)
        wait_until(lambda: answers(place, deadline), deadline, "the server answers")
    return read_state(place.url, deadline)


def identify(pid: int) -> str:
    """Return one word that names this run of the process: its number may be given out again.

    :raises ProcessLookupError: there is none on this host.
    """
    return f"{pid}/{_started(pid)}"


def find(process: str) -> int | None:
    """Return a handle on that run, which stays with it, None when it has ended."""
    pid = int(process.partition("/")[0])
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    found = None
    try:
        if identify(pid) == process:
            found = handle
    except ProcessLookupError:
        pass
    finally:
        if found is None:
            os.close(handle)
    return found


def lives(process: str) -> bool:
    """Tell whether that run has not ended."""
    handle = find(process)
    if handle is None:
        return False
    os.close(handle)
    return True


def kill(handle: int) -> None:
    """End the process at once, frozen or not; return when it has ended.

    :raises NotNow: it has not within some seconds, and may take writes still.
    """
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return
    if not select.select([handle], [], [], _DYING)[0]:
        raise NotNow(
            f"the server was killed and has not ended within {_DYING:g} s, so it may take writes"
            " still: see whether its disk hangs, or it is process 1 of the agent's own container"
        )


def _started(pid: int) -> str:
    """Return when it was started, in ticks since the boot (proc(5), stat, field 22)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    return text.rpartition(")")[2].split()[19]
