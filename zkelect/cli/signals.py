"""Ctrl-C and its kin: the first one ends the command in order, the next ones change nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self

__all__ = ["Interrupted", "Interruption"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(SystemExit):
    """A signal asks the command to end; the exit status is the shell's, 128 + its number."""

    def __init__(self, signum: int) -> None:
        self.signal: Final = signal.Signals(signum)
        super().__init__(128 + signum)


class Interruption:
    """Raises :class:`Interrupted` in its block at the first signal, and ignores those after it.

    What is stopped then is stopped undisturbed, also by an impatient second Ctrl-C: until the
    process has ended. A signal that was ignored before (nohup) stays ignored. Main thread only::

        with Interruption() as interruption:
            ...  # may raise Interrupted anywhere
            with interruption.deferred():
                ...  # only this may: interruption.check()
    """

    def __init__(self) -> None:
        self._signal: int | None = None
        self._deferred = False
        self._former: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}

    def __enter__(self) -> Self:
        """Heed the signals from now on."""
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._heed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the signals to whom they were before, unless there was one: we are ending."""
        if self._signal is None:
            for number, handler in self._former.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Raise only where :meth:`check` is called, and at the end of the block.

        For code that an exception must not hit at any point. kazoo is such: it swallows what is
        raised while it hands a request to its thread (a bare ``except`` in 2.11's client.py), and
        now and then a Ctrl-C was lost there (measured).
        """
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        self.check()

    def check(self) -> None:
        """Raise if there was a signal.

        :raises Interrupted: there was.
        """
        if self._signal is not None:
            raise Interrupted(self._signal)

    def _heed(self, signum: int, _: FrameType | None) -> None:
        for number in self._former:
            signal.signal(number, signal.SIG_IGN)
        self._signal = signum
        if not self._deferred:
            self.check()
