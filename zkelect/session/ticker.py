"""The one thread of a session: timers and the watchdog. It runs no user code."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from zkelect.session.clock import Clock

__all__ = ["Ticker", "Timer"]

_log: Final = logging.getLogger("zkelect.session")
_Result = TypeVar("_Result")
_RETRY: Final = 0.1
_LONGEST_NAP: Final = 0.5
"""Seconds: so a machine that slept, or a clock that jumped, is noticed soon."""


@attrs.define(eq=False)
class Timer:
    """A call to come, unless it was ``due`` already, or cancelled."""

    at: float
    call: Callable[[], None]
    due: bool = False

    def cancel(self) -> None:
        """Forget the call; harmless when it has come already."""
        self.due = True


class Ticker:
    """Calls back at boot-clock instants, under the session's lock.

    :param watch: called at every turn with the present instant; returns the next instant
        at which it wants to be called.
    """

    def __init__(
        self, lock: threading.RLock, clock: Clock, watch: Callable[[float], float], name: str
    ) -> None:
        self._wanted = threading.Condition(lock)
        self._clock = clock
        self._watch = watch
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._stopped = False
        self._kicked = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread at its next turn; needs the lock."""
        self._stopped = True
        self.kick()

    def join(self, timeout: float) -> None:
        """Wait for the thread's end, unless called on it, or it never began."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def call_at(self, at: float, call: Callable[[], None]) -> Timer:
        """Call at an instant or soon after; needs the lock."""
        timer = Timer(at, call)
        heapq.heappush(self._timers, (at, next(self._order), timer))
        if self._timers[0][2] is timer:
            self.kick()
        return timer

    def kick(self) -> None:
        """Take a turn now: something is due earlier than was known; needs the lock."""
        self._kicked = True
        self._wanted.notify()

    def turn(self) -> float:
        """Do what is due and return when to turn again; needs the lock."""
        now = self._clock.boottime()
        while self._timers and (self._timers[0][0] <= now or self._timers[0][2].due):
            timer = heapq.heappop(self._timers)[2]
            if not timer.due:
                timer.due = True
                self._survive(timer.call)
        wanted = self._survive(lambda: self._watch(now))
        if wanted is None:
            wanted = now + _RETRY
        return min(wanted, self._timers[0][0]) if self._timers else wanted

    def _run(self) -> None:
        with self._wanted:
            while not self._stopped:
                self._kicked = False
                wanted = self.turn()
                if not self._kicked:
                    nap = min(wanted - self._clock.boottime(), _LONGEST_NAP)
                    self._wanted.wait(max(nap, 0.0))

    def _survive(self, call: Callable[[], _Result]) -> _Result | None:
        """A bug in one turn must not end the watchdog: then nobody would ever be deposed."""
        try:
            return call()
        except Exception:  # noqa: BLE001  # whatever it is, it is told, and the next turn comes
            _log.exception("a turn of the watchdog failed; leases go on by their deadlines")
            return None
