"""The clock that leases count on, and how to tell that the machine slept."""

from __future__ import annotations

import time
from typing import Final, Protocol

__all__ = ["SLEPT", "Clock", "SleepDetector", "SystemClock"]

SLEPT: Final = 0.1
"""Seconds by which the boot clock must run ahead before we say that the machine slept."""


class Clock(Protocol):
    """Two clocks that only go forward, in float seconds."""

    def boottime(self) -> float:
        """Return an instant that also counts while the machine sleeps."""

    def monotonic(self) -> float:
        """Return an instant that stands still while the machine sleeps."""


class SystemClock:
    """The kernel's clocks.

    Linux: CLOCK_BOOTTIME, for CLOCK_MONOTONIC stands still in suspend
    (clock_gettime(2)). Elsewhere both are the monotonic clock, and sleep is not told.
    """

    def boottime(self) -> float:
        """Return the present instant, sleep included."""
        return _boottime()

    def monotonic(self) -> float:
        """Return the present instant, sleep left out."""
        return time.monotonic()


def _boottime() -> float:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class SleepDetector:
    """Tells once after each sleep of the machine.

    After resume CLOCK_BOOTTIME itself is only good to about a second (the RTC's
    resolution), so what was leased before cannot be counted on after.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gap = self._read()

    def slept(self) -> bool:
        """Return whether the machine slept since the last call."""
        gap = self._read()
        grew = gap - self._gap >= SLEPT
        self._gap = gap
        return grew

    def _read(self) -> float:
        return self._clock.boottime() - self._clock.monotonic()
