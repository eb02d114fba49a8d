"""True time, and the processes that run in it: with clocks of their own, and not always.

Everything that happens in a history is an event of one queue. A process that is stalled
(a long garbage collection, a stopped virtual machine, a processor given to others) gets
its events when it runs again, in the order in which they fell due.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from search.network import Link

__all__ = ["Process", "Timeline"]


class Timeline:
    """The queue of what is to come. All its instants are true seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = count()
        self._events: list[
            tuple[float, float, int, Process, Callable[..., None], tuple[Any, ...]]
        ] = []

    def at(self, instant: float, process: Process, call: Callable[..., None], *args: Any) -> None:
        """Let a process do something at an instant, or as soon after as it runs."""
        event = (instant, instant, next(self._numbers), process, call, args)
        heapq.heappush(self._events, event)

    def run(self, horizon: float, over: Callable[[], bool]) -> None:
        """Let everything happen until nothing more is of interest."""
        events = self._events
        while events and not over():
            at, due, number, process, call, args = heapq.heappop(events)
            if at > horizon:
                return
            if at < process.asleep_until:
                heapq.heappush(events, (process.asleep_until, due, number, process, call, args))
                continue
            self.now = at
            process.attend()
            call(*args)


class Process:
    """A program on a machine. Its clock has a rate; what it shows does not matter.

    :ivar asleep_until: until when it is stalled; in the past when it runs.
    :ivar slept: for how long it has been stalled in all, seconds.
    """

    def __init__(self, timeline: Timeline, number: int, rate: float = 1.0) -> None:
        self.timeline = timeline
        self.number = number
        self.rate = rate
        self.asleep_until = 0.0
        self.slept = 0.0

    @property
    def awake(self) -> bool:
        """Whether it runs just now."""
        return self.asleep_until <= self.timeline.now

    def boottime(self) -> float:
        """Return what its clock shows."""
        return self.timeline.now * self.rate

    def monotonic(self) -> float:
        """Return the same: no machine is suspended here, see tests/test_clock.py."""
        return self.timeline.now * self.rate

    def stall(self, duration: float) -> None:
        """Do not let it run for so long."""
        now = self.timeline.now
        until = max(self.asleep_until, now + duration)
        self.slept += until - max(self.asleep_until, now)
        self.asleep_until = until

    def attend(self) -> None:
        """Do what another thread of the process would have done by now."""

    def lost(self, link: Link) -> None:
        """Hear that the other side has closed a connection."""
