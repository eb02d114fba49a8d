"""The one clock, the outer bound, and waiting for what cannot tell when it happens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WITHIN", "boottime", "until"]

WITHIN: Final = 30.0
"""Seconds: an outer bound against a hang, never a measure."""

boottime: Final = SystemClock().boottime
"""The boot clock, the same one in every process of the machine."""


def until(condition: Callable[[], object], what: str) -> None:
    """Ask again until something holds."""
    deadline = boottime() + WITHIN
    while not condition():
        assert boottime() < deadline, f"it never came about that {what}"
        time.sleep(0.01)
