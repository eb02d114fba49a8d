"""Probes: the chain of quorum commits that the lease is made of.

A probe is one multi of checks: of the record at its version, and of each of our
candidates that leads or may have to soon. It is a real quorum commit, changes nothing
and wakes no watcher; a server without a quorum cannot answer it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from zkelect.core.lease import GAP, Lease, pace_of, patience_of
from zkelect.session.clock import Clock
from zkelect.session.driver import SLICE, Driver, Roster
from zkelect.session.gateway import Check, Failure, Fault, Gateway

__all__ = ["Prober"]


class Prober:
    """Sends one probe at a time while a candidate of the session has use for a lease.

    :param roster: tells who has use for it. :param answered: called after every answer,
        with whether the probe counted.
    """

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        roster: Roster,
        answered: Callable[[bool], None],
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._roster = roster
        self._tell = answered
        self._lease = Lease()
        self._connection = 0
        self._answered = -math.inf
        self._asked: float | None = None
        self._hurried = False
        self._turn = 0

    def begin(self, lease: Lease, connection: int) -> None:
        """Start a new chain: a connection is there, its number tells it from others."""
        self._lease, self._connection = lease, connection
        self._asked = None
        self._answered = -math.inf

    def halt(self) -> None:
        """The connection is gone; what is under way proves nothing."""
        self._lease.discard()
        self._connection = 0
        self._asked = None

    def due(self, now: float) -> float:
        """Send a probe if it is time; return when to be asked again."""
        if not self._connection or not self._roster.warm:
            return math.inf
        if self._asked is not None:
            # After that the watchdog decides. It bears with an answer that is here but not
            # handed over yet; to ask it without a pause would keep the handing thread waiting.
            return max(self._asked + patience_of(self._lease.timeout), now + GAP)
        at = self._answered + self._pace(now)
        if now < at:
            return at
        self._send()
        return now + patience_of(self._lease.timeout)

    def hurry(self) -> None:
        """Let the next probe go out now, or as soon after the last answer as is evidence."""
        self._hurried = True

    def _pace(self, now: float) -> float:
        """Hurry while a first candidate waits for nothing but the lease."""
        wanting = now >= self._lease.deadline and self._roster.first
        if wanting or self._hurried:
            return GAP
        return pace_of(self._lease.timeout)

    def _send(self) -> None:
        drivers = self._slice(list(self._roster.warm))
        checks = [check for driver in drivers for check in driver.checks()]
        sent = list(dict.fromkeys(checks))
        self._hurried = False
        self._asked = self._clock.boottime()
        self._lease.ask(self._asked)
        lease, connection = self._lease, self._connection
        try:
            self._gateway.multi(
                sent,
                lambda answer: self._receive(lease, connection, drivers, sent, answer),
                urgent=True,
            )
        except BaseException:
            self._asked = None
            lease.discard()
            raise

    def _slice(self, warm: Sequence[Driver]) -> list[Driver]:
        """Return whose turn it is, and those who were promised to be checked each time."""
        start = self._turn if self._turn < len(warm) else 0
        self._turn = start + SLICE
        return list(dict.fromkeys((*self._roster.promised, *warm[start : start + SLICE])))

    def _receive(
        self,
        lease: Lease,
        connection: int,
        drivers: Sequence[Driver],
        sent: Sequence[Check],
        answer: Any,
    ) -> None:
        if lease is not self._lease or connection != self._connection:
            return  # asked on one connection, answered on another: no evidence
        self._asked = None
        self._answered = self._clock.boottime()
        failed = _failed(sent, answer)
        counts = not failed and not isinstance(answer, Failure)
        if counts:
            lease.answer(self._answered)
        else:
            lease.discard()
        self._tell(counts)
        for path, fault in failed:
            for driver in drivers:
                driver.contradict(path, fault)


def _failed(sent: Sequence[Check], answer: Any) -> list[tuple[str, Fault]]:
    """Return what failed for its own reason; the rest was only rolled back with it."""
    if isinstance(answer, Failure):
        return []
    return [
        (check.path, item.fault)
        for check, item in zip(sent, answer, strict=True)
        if isinstance(item, Failure) and item.fault is not Fault.ROLLED_BACK
    ]
