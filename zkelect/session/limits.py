"""Numbers that users give: what is legal, told before anything is done."""

from __future__ import annotations

import threading
from typing import Final

from zkelect.core.lease import smallest_timeout
from zkelect.errors import InvalidArgument

__all__ = ["check_session", "check_timeout"]

_LONGEST_SESSION: Final = 86_400.0


def check_timeout(timeout: float | None, argument: str = "timeout") -> None:
    """Refuse a time to wait that is negative, not a number, or more than a thread can wait."""
    if timeout is not None and not 0 <= timeout <= threading.TIMEOUT_MAX:
        raise InvalidArgument(
            argument, timeout, f"seconds from 0 to {threading.TIMEOUT_MAX:g}, or None where allowed"
        )


def check_session(session_timeout: float, tick_time: float | None, hops: int = 1) -> None:
    """Refuse times of which no steady lease can come.

    :raises InvalidArgument: names the smallest session timeout that works.
    """
    if tick_time is not None and not 0 < tick_time < _LONGEST_SESSION:
        raise InvalidArgument("tick_time", tick_time, "seconds above 0, as the servers have it")
    least = smallest_timeout(tick_time)
    if not least <= session_timeout <= _LONGEST_SESSION:
        raise InvalidArgument(
            "session_timeout",
            session_timeout,
            f"seconds from {least:g}, the least that keeps a steady lease, to {_LONGEST_SESSION:g}",
        )
    if tick_time is not None and tick_time > session_timeout / 2:
        raise InvalidArgument("tick_time", tick_time, "at most half the session timeout")
    if hops not in (1, 2):
        raise InvalidArgument("hops", hops, "1 or 2")
