"""When to ask the command to end, and when to kill it: pure, from instants to acts."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

__all__ = ["KILLING", "Act", "Plan"]

KILLING: Final = 0.05
"""Seconds before the deadline at which we kill, so that all is dead when it comes."""

_AGAIN: Final = 0.05
"""Seconds from one kill to the next, of what forked meanwhile."""


class Act(Enum):
    """What is due."""

    NOTHING = 0
    TERMINATE = 1
    KILL = 2


class Plan(NamedTuple):
    """The end of one run of the command, as far as it is known.

    An end that has begun is not called off when the lease is renewed after all: what was asked to
    end is ending.

    :ivar grace: seconds from asking to killing. :ivar deadline: of the lease, boot clock.
    :ivar asked: when an end has begun, from where grace counts; None: none has.
    :ivar terminated: the command has been asked. :ivar killed: when it was killed last.
    """

    grace: float
    deadline: float
    asked: float | None = None
    terminated: bool = False
    killed: float | None = None

    @property
    def kill_at(self) -> float:
        """The instant at which nothing may be left alive; never after the deadline."""
        latest = self.deadline - KILLING
        return latest if self.asked is None else min(self.asked + self.grace, latest)

    @property
    def next(self) -> float:
        """When something is due."""
        if self.killed is not None:
            return self.killed + _AGAIN
        return self.kill_at if self.terminated else min(self._terminate_at, self.kill_at)

    def due(self, now: float) -> Act:
        """Return what is to be done now."""
        if now < self.next:
            return Act.NOTHING
        return Act.KILL if now >= self.kill_at else Act.TERMINATE

    def renewed(self, deadline: float) -> Plan:
        """The lease is longer; a deadline never falls."""
        if self.asked is not None:
            return self
        return self._replace(deadline=max(deadline, self.deadline))

    def ended(self, now: float, *, at_once: bool = False) -> Plan:
        """The command is to end, whatever the lease; what began earlier, goes on."""
        if at_once:
            return self._replace(asked=now - self.grace)
        return self if self.asked is not None else self._replace(asked=now)

    def did(self, act: Act, now: float) -> Plan:
        """An act is done."""
        ending = self.ended(now)
        if act is Act.KILL:
            return ending._replace(terminated=True, killed=now)
        return ending._replace(terminated=True)

    @property
    def _terminate_at(self) -> float:
        return self.deadline - KILLING - self.grace if self.asked is None else self.asked
