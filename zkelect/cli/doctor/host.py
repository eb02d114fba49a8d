"""Watching this machine: for how long it stands still, and what its clocks say."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from zkelect.cli.doctor.facts import Host
from zkelect.session.clock import Clock, SystemClock

__all__ = ["watch_host"]

_STEP: Final = 0.001


def watch_host(
    seconds: float,
    *,
    clock: Clock | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Host:
    """Sleep again and again for a millisecond, and see how much longer it takes.

    :param seconds: for how long, from 0.
    """
    clock = SystemClock() if clock is None else clock
    longest, began = 0.0, clock.boottime()
    before = began
    while before < began + seconds:
        sleep(_STEP)
        now = clock.boottime()
        longest = max(longest, now - before - _STEP)
        before = now
    return Host(measured=before - began, pause=longest, slept=_slept(clock))


def _slept(clock: Clock) -> float | None:
    """Return for how long the machine has slept since it was started."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    return max(clock.boottime() - clock.monotonic(), 0.0)
