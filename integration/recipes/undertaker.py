"""Servers that have ended are reaped: the first process of some machines is slow at it.

A server that is dead and not reaped counts as alive, also for PostgreSQL itself. Recipes and
tutorials start servers that are daemons, so without this they are left to that first process.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recipes.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Undertaker"]

_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None)


class Undertaker(Background):
    """Reaps those of these processes that are left to us, in a block.

    :param running: tells their numbers, again and again. :param pause: seconds between two looks.
    """

    def __init__(self, running: Callable[[], Iterable[int]], pause: float = 0.02) -> None:
        super().__init__(self._work)
        self._running = running
        self._pause = pause
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def _work(self) -> None:
        pids: set[int] = set()
        while not self.done.wait(self._pause):
            pids.update(self._running())
            _reap(pids)


def _reap(pids: set[int]) -> None:
    """Reap those that have ended and were left to us; forget those that are gone."""
    for pid in list(pids):
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        if not Path(f"/proc/{pid}").exists():
            pids.remove(pid)
