"""The one clock, the outer bound, and waiting for what cannot tell when it happens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LONG", "WITHIN", "boottime", "until"]

WITHIN: Final = 30.0
"""Seconds: an outer bound against a hang, never a measure."""

LONG: Final = 120.0
"""Seconds: the same for servers that are stopped, rewound, copied, and started."""

boottime: Final = SystemClock().boottime
"""The boot clock, the same one in every process of the machine."""


def until(condition: Callable[[], object], what: str, *, within: float = WITHIN) -> None:
    """Ask again until something holds.

    :param within: seconds, the outer bound.
    """
    deadline = boottime() + within
    while not condition():
        assert boottime() < deadline, f"it never came about that {what}"
        time.sleep(0.01)
