"""Numbers that users give: what is legal, told before anything is done."""

from __future__ import annotations

import threading
from numbers import Real
from typing import Final, TypeGuard

from zkelect.core.lease import smallest_timeout
from zkelect.errors import InvalidArgument

__all__ = ["LONGEST_SESSION", "check_session", "check_timeout"]

LONGEST_SESSION: Final = 86_400.0
"""Seconds; nobody may ask for more."""


def check_timeout(
    timeout: float | None, argument: str = "timeout", *, endless: bool = True
) -> None:
    """Refuse a time to wait that is negative, not a number, or more than a thread can wait.

    :param endless: whether None is one: as long as it takes.
    """
    if timeout is None and endless:
        return
    if not _is_number(timeout) or not 0 <= timeout <= threading.TIMEOUT_MAX:
        also = ", or None" if endless else ""
        form = f"a number of seconds from 0 to {threading.TIMEOUT_MAX:g}{also}"
        raise InvalidArgument(argument, timeout, form)


def _is_number(value: object) -> TypeGuard[float]:
    """Whether it can be counted with; what is true or false was meant as something else."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_session(session_timeout: float, tick_time: float | None, hops: int = 1) -> None:
    """Refuse times of which no steady lease can come.

    :raises InvalidArgument: names the smallest session timeout that works.
    """
    if tick_time is not None and not (_is_number(tick_time) and 0 < tick_time < LONGEST_SESSION):
        form = "a number of seconds above 0, as the servers have it, or None"
        raise InvalidArgument("tick_time", tick_time, form)
    least = smallest_timeout(tick_time)
    if not _is_number(session_timeout) or not least <= session_timeout <= LONGEST_SESSION:
        raise InvalidArgument(
            "session_timeout",
            session_timeout,
            f"a number of seconds from {least:g}, the least that keeps a steady lease, to "
            f"{LONGEST_SESSION:g}",
        )
    if tick_time is not None and tick_time > session_timeout / 2:
        raise InvalidArgument("tick_time", tick_time, "at most half the session timeout")
    if hops not in (1, 2):
        raise InvalidArgument("hops", hops, "1 or 2")
