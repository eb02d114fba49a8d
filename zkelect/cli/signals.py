"""Ctrl-C and its kin: the first one ends the command in order, the next ones change nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

__all__ = ["Interrupted", "interruptible"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(SystemExit):
    """A signal asks the command to end; the exit status is the shell's, 128 + its number."""

    def __init__(self, signum: int) -> None:
        self.signal: Final = signal.Signals(signum)
        super().__init__(128 + signum)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise :class:`Interrupted` in the block at the first signal, and ignore those after it.

    What is stopped then is stopped undisturbed, also by an impatient second Ctrl-C. A signal
    that was ignored before (nohup) stays ignored. Main thread only.
    """
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    former = {number: signal.signal(number, _interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _interrupt(signum: int, _: FrameType | None) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise Interrupted(signum)
