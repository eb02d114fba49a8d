"""The dead-man's switch, the other side: a process that strikes at the last deadline it was told.

When the agent is gone it waits for that deadline all the same: whoever comes next has a lease
of its own.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final

import attrs

from zkelect.recipes.clock import now

__all__ = ["NEVER", "keep_watch", "tell"]

NEVER: Final = "never"
"""The order that takes the last deadline back."""
_PAUSE: Final = 0.05


@attrs.frozen
class _Order:
    deadline: float
    target: str


def keep_watch(orders: BinaryIO, strike: Callable[[str], None]) -> None:
    """Read lines of deadline and target; return when nobody is there and nothing is left to do.

    :param strike: called with the target of the last order, when its deadline is there; again if
        it raises, as long as nobody takes that order back.
    """
    order: _Order | None = None
    attended = True
    while attended or order is not None:
        if not _await(orders if attended else None, order):
            assert order is not None
            order = _obey(order, strike)
            continue
        lines = _read_lines(orders)
        attended = bool(lines)
        order = _parse(lines[-1]) if lines else order


def tell(text: str) -> None:
    """Say it to whoever reads what the process prints.

    Nobody may: a pipe that is broken raises, and one that is full would keep us.
    """
    with suppress(Exception):
        if select.select([], [sys.stderr], [], 0)[1]:
            sys.stderr.write(f"{text}\n")


def _obey(order: _Order, strike: Callable[[str], None]) -> _Order | None:
    """Strike; return what is left to do: all of it, in a moment, if that failed."""
    try:
        strike(order.target)
    except Exception as error:  # noqa: BLE001  nobody else would strike
        tell(f"zkelect: {order.target} is not stopped: {error!r}")
        return _Order(now() + _PAUSE, order.target)
    return None


def _await(orders: BinaryIO | None, order: _Order | None) -> bool:
    """Wait for orders; False when the deadline is there first."""
    while order is None or now() < order.deadline:
        wait = None if order is None else max(order.deadline - now(), 0)
        if select.select([] if orders is None else [orders], [], [], wait)[0]:
            return True
    return False


def _read_lines(orders: BinaryIO) -> list[str]:
    """Return what was written since; one write is far below what a pipe keeps in one piece."""
    return os.read(orders.fileno(), 1 << 16).decode().splitlines()


def _parse(line: str) -> _Order | None:
    if line == NEVER:
        return None
    deadline, target = line.split(" ", 1)
    return _Order(float(deadline), target)
