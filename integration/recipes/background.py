"""What works on threads of its own while a block lasts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Background"]

_WITHIN: Final = 60.0
"""Seconds: an outer bound."""


class Background:
    """Runs each of these functions on a thread; all return soon after ``done`` is set."""

    def __init__(self, *works: Callable[[], None]) -> None:
        self.done = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Return when they have returned; harmless the second time."""
        self.done.set()
        for thread in self._threads:
            thread.join(_WITHIN)
            assert not thread.is_alive(), f"{type(self).__name__} hangs"
