"""Threads for the user's callbacks: few, grown only for those that block."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

import attrs

__all__ = ["CallbackPool"]

_log: Final = logging.getLogger("zkelect.callbacks")
FEWEST: Final = 2
MOST: Final = 8


@attrs.define(eq=False)
class _Run:
    lane: Hashable
    label: str
    since: float
    warned: bool = False


class CallbackPool:
    """Runs callbacks one at a time per lane, in the order they were submitted.

    Threads are made when first needed. A callback that blocks holds one; it is named in
    a warning, and the pool grows by one for it, up to eight (kubernetes #139991 tells
    what becomes of a leader whose callbacks share a thread with its lease).

    :param now: reads the clock by which :meth:`watch` is called.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._wanted = threading.Condition()
        self._lanes: dict[Hashable, deque[tuple[str, Callable[[], None]]]] = {}
        self._ready: deque[Hashable] = deque()
        self._running: dict[int, _Run] = {}
        self._threads = 0
        self._limit = FEWEST
        self._closed = False

    def submit(self, lane: Hashable, label: str, call: Callable[[], None]) -> None:
        """Run ``call`` behind all that was submitted to the same lane.

        :param label: how a warning names it.
        """
        with self._wanted:
            if self._closed:
                return
            if lane in self._lanes:
                self._lanes[lane].append((label, call))
                return
            self._lanes[lane] = deque([(label, call)])
            self._offer(lane)

    def follow(self, lane: Hashable, label: str, call: Callable[[], None]) -> None:
        """Run a call of the library's own behind all of that lane: here, when there is nothing.

        It must neither block nor raise. So candidates without functions of the user's need no
        thread, however many they are.
        """
        with self._wanted:
            if lane in self._lanes:
                self._lanes[lane].append((label, call))
                return
        call()

    def watch(self, now: float, patience: float) -> None:
        """Name callbacks that have run for longer than ``patience``, seconds, once each."""
        with self._wanted:
            for run in self._running.values():
                if not run.warned and now - run.since > patience:
                    run.warned = True
                    self._limit = min(self._limit + 1, MOST)
                    _log.warning("%s has run for %.1f s and goes on", run.label, now - run.since)
            if self._ready:
                self._grow()

    def current_lane(self) -> Hashable | None:
        """Return the lane whose callback the calling thread is just running."""
        with self._wanted:
            run = self._running.get(threading.get_ident())
            return None if run is None else run.lane

    def close(self) -> None:
        """Take no more; threads end when what they run is over. Waits for nothing."""
        with self._wanted:
            self._closed = True
            self._wanted.notify_all()

    def _offer(self, lane: Hashable) -> None:
        self._ready.append(lane)
        self._grow()
        self._wanted.notify()

    def _grow(self) -> None:
        idle = self._threads - len(self._running)
        if idle < len(self._ready) and self._threads < self._limit:
            self._threads += 1
            threading.Thread(target=self._work, name="zkelect callbacks", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._wanted:
                self._wanted.wait_for(lambda: self._ready or self._closed)
                if not self._ready:
                    self._threads -= 1
                    return
                lane = self._ready.popleft()
                label, call = self._lanes[lane].popleft()
                me = threading.get_ident()
                self._running[me] = _Run(lane, label, self._now())
            self._run(label, call)
            with self._wanted:
                del self._running[me]
                self._next(lane)

    def _run(self, label: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001  # the user's: heard here, must not end the lane
            _log.exception("%s raised", label)

    def _next(self, lane: Hashable) -> None:
        if self._lanes[lane]:
            self._offer(lane)
        else:
            del self._lanes[lane]
