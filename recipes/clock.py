"""The clock of a recipe: the boot clock, by which leases are counted too."""

from __future__ import annotations

import time

__all__ = ["now"]

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS has no CLOCK_BOOTTIME


def now() -> float:
    """Return the present instant, in seconds, as ``leadership.deadline`` is given."""
    return time.clock_gettime(_CLOCK)
