"""Traps: a file that the director lays, and that the next writer steps on in mid-transaction."""

from __future__ import annotations

import itertools
import os
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["FALLS", "Trap", "fall"]

FALLS: Final = (signal.SIGKILL.name, signal.SIGSTOP.name)
"""What can become of a writer in whose process the transaction is: see :func:`fall`."""

_SPRUNG_WITHIN: Final = 0.1


class Trap:
    """Catches one writer each time that it is laid.

    :param path: of the file; the director and all candidates name the same one.
    :param ends: what is to become of who is caught, by turns.
    """

    def __init__(self, path: Path, ends: Sequence[str]) -> None:
        self._path = path
        self._ends = itertools.cycle(ends)

    @contextmanager
    def laid(self) -> Iterator[None]:
        """Lay it for the block."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(next(self._ends), "ascii")
        fresh.rename(self._path)
        try:
            yield
        finally:
            if not self._remove():
                time.sleep(_SPRUNG_WITHIN)  # so that who is to go on has been stopped before

    def spring(self) -> str:
        """Return what is to become of us; empty if there is no trap, or if it has another."""
        try:
            end = self._path.read_text("ascii")
        except FileNotFoundError:
            return ""
        return end if self._remove() else ""

    def _remove(self) -> bool:
        """Remove it; False when somebody was faster."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True


def fall(end: str) -> None:
    """Kill or stop this process where it stands, if an end of :data:`FALLS` is given."""
    if end:
        os.kill(os.getpid(), signal.Signals[end])
