"""Deadlines on the boot clock: what is left, and waiting for what cannot tell when it happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from zkelect.recipes.clock import now
from zkelect.recipes.resource import NotNow

__all__ = ["left", "wait_until"]

_POLL_EVERY: Final = 0.02


def left(deadline: float) -> float:
    """Return the seconds until then.

    :raises NotNow: there are none.
    """
    seconds = deadline - now()
    if seconds <= 0:
        raise NotNow("the time given for it is over")
    return seconds


def wait_until(condition: Callable[[], bool], deadline: float, what: str) -> None:
    """Ask again and again until it holds.

    :param what: what is waited for, as the message says it.
    :raises NotNow: it does not hold by the deadline.
    """
    while not condition():
        if now() >= deadline:
            raise NotNow(f"not in time: {what}")
        time.sleep(_POLL_EVERY)
