"""Signals to the elector, taken by a thread of their own.

A handler of Python's would run on the main thread, wherever that is: within a lock, within
kazoo. And it would not tell what sigwaitinfo(2) does: whether a key of the terminal was struck,
which the command has heard itself then.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self

from zkelect.cli.failures import tell

__all__ = ["Caught", "SignalWatch"]

_HEEDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_SI_KERNEL: Final = 0x80  # sigaction(2)


class Caught(NamedTuple):
    """A signal that came.

    :ivar typed: the terminal sent it, to all of its foreground process group.
    """

    signal: signal.Signals
    typed: bool


class SignalWatch:
    """Takes the signals that end a command, in its block; those ignored before stay ignored.

    Enter it before there are threads: what they do not block, they may be given.

    :ivar receiver: is called with each, on the watch's thread. At first the process just ends:
        it has not stood for anything yet.
    """

    def __init__(self) -> None:
        heeded = {each for each in _HEEDED if signal.getsignal(each) is not signal.SIG_IGN}
        self.receiver: Callable[[Caught], None] = _leave
        self._heeded: Final = heeded
        self._thread: Final = threading.Thread(target=self._watch, name="signals", daemon=True)
        self._over = not heeded

    def __enter__(self) -> Self:
        self._former = signal.pthread_sigmask(signal.SIG_BLOCK, self._heeded)
        if not self._over:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._over:
            self._over = True
            assert self._thread.ident is not None
            signal.pthread_kill(self._thread.ident, min(self._heeded))  # it looks up, and ends
            self._thread.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._former)

    def _watch(self) -> None:
        while True:
            told = signal.sigwaitinfo(self._heeded)
            if self._over:
                return
            self.receiver(Caught(signal.Signals(told.si_signo), told.si_code == _SI_KERNEL))


def _leave(caught: Caught) -> None:
    """End at once: the main thread may be connecting, where it hears of nothing else."""
    tell(f"{caught.signal.name}: ended before it stood for election")
    os._exit(128 + caught.signal)
