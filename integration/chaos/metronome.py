"""Keeps time for the record: how the two clocks stand to each other, and lost processor time.

Transaction logs tell the wall clock, everything else the boot clock. And a machine that
stands still for half a second makes every promise of time look broken.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Self

from chaos.history import boottime

if TYPE_CHECKING:
    from chaos.history import Writer

__all__ = ["LATE", "Metronome"]

LATE: Final = 0.1
"""Seconds by which a beat must be late to be told."""

_BEAT: Final = 0.05
_BEATS_TOLD: Final = 20


class Metronome:
    """Writes ``beaten`` once a second, with the wall clock, and ``late`` when a beat is."""

    def __init__(self, history: Writer) -> None:
        self._history = history
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        beats = 0
        while not self._ended.is_set():
            if beats % _BEATS_TOLD == 0:
                self._write_clocks()
            beats += 1
            expected = boottime() + _BEAT
            self._ended.wait(_BEAT)
            if (late := boottime() - expected) > LATE:
                self._history.write("late", seconds=late)

    def _write_clocks(self) -> None:
        before = boottime()
        wall = time.time()
        self._history.write("beaten", at=(before + boottime()) / 2, wall=wall)
