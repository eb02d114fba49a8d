"""The dead-man's switch, the other side: a process that strikes at the last deadline it was told.

When the agent is gone it waits for that deadline all the same: whoever comes next has a lease
of its own.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import BinaryIO, Final

import attrs

from zkelect.recipes.clock import now

__all__ = ["NEVER", "keep_watch"]

NEVER: Final = "never"
"""The order that takes the last deadline back."""


@attrs.frozen
class _Order:
    deadline: float
    target: str


def keep_watch(orders: BinaryIO, strike: Callable[[str], None]) -> None:
    """Read lines of deadline and target; return when nobody is there and nothing is left to do.

    :param strike: called with the target of the last order, when its deadline is there.
    """
    order: _Order | None = None
    attended = True
    while attended or order is not None:
        if not _await(orders if attended else None, order):
            assert order is not None
            strike(order.target)
            order = None
            continue
        lines = _read_lines(orders)
        attended = bool(lines)
        order = _parse(lines[-1]) if lines else order


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
