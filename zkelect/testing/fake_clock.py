"""Clocks that stand still until somebody turns them."""

from __future__ import annotations

from zkelect.errors import InvalidArgument

__all__ = ["MachineClock", "VirtualClock"]


class VirtualClock:
    """The time of a world in memory: it passes only when somebody says so.

    :ivar now: the present instant, seconds.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def later(self, seconds: float) -> float:
        """Return the instant after so many seconds.

        :raises InvalidArgument: a negative number: no clock of a lease ever goes back.
        """
        if not seconds >= 0:
            raise InvalidArgument("seconds", seconds, "0 or more")
        return self.now + seconds


class MachineClock:
    """The two clocks of one machine in that world; see :class:`zkelect.session.clock.Clock`.

    :ivar slept: seconds for which the machine was suspended, all in all.
    """

    def __init__(self, world: VirtualClock) -> None:
        self._world = world
        self.slept = 0.0

    def boottime(self) -> float:
        """Return the present instant, sleep included."""
        return self._world.now

    def monotonic(self) -> float:
        """Return the present instant, sleep left out."""
        return self._world.now - self.slept
