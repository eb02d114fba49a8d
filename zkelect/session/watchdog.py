"""The watchdog: everything that time can break, looked at in one place."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

from zkelect.core.events import Reason
from zkelect.core.lease import patience_of
from zkelect.session.clock import SleepDetector

if TYPE_CHECKING:
    from zkelect.session.session import Session

__all__ = ["Watchdog"]

_log: Final = logging.getLogger("zkelect.session")


class Watchdog:
    """Called at every turn of the session's thread, under its lock."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sleep = SleepDetector(session.clock)

    def watch(self, now: float) -> float:
        """Look at everything; return the instant at which to look again at the latest."""
        session = self._session
        if self._sleep.slept():
            self._distrust()
        if now >= session.lease.deadline:
            self._lapse()
        self._renew(now)
        session.pool.watch(now, session.timeout)
        due = session.prober.due(now)
        return min(due, session.lease.deadline) if session.roster.leading else due

    def _lapse(self) -> None:
        """No quorum commit came in time: the leaders stop by themselves, with no network."""
        for driver in tuple(self._session.roster.leading):
            driver.end_term(Reason.LAPSED)

    def _renew(self, now: float) -> None:
        """Drop a connection that is worse than a new one; the session goes on."""
        session = self._session
        for worse, why in (
            (session.link.overdue, "the server took the connection and keeps silent"),
            (self._silent, "the server owes an answer for too long"),
            (self._cold, "a new one gives the first candidate its lease sooner"),
        ):
            if worse(now):
                _log.info("%s: dropping the connection: %s", session.hosts, why)
                session.link.shut()
                return

    def _silent(self, now: float) -> bool:
        """Whether the server has owed us an answer for so long that the link counts as dead."""
        since = self._session.gateway.silent_since()
        if since is None or not self._session.connected:
            return False
        # What an earlier connection owes is unknown already, only not handed over yet.
        since = max(since, self._session.connected_at)
        return now - since > patience_of(self._session.timeout)

    def _cold(self, now: float) -> bool:
        """Whether a candidate is first and a new connection gives it its lease sooner.

        A connection that was slow to come is kept: the next one would be no better.
        """
        session = self._session
        if not session.roster.first or not session.connected:
            return False
        settled = now - session.connected_at > session.timeout / 4
        return settled and session.lease.stale(now)

    def _distrust(self) -> None:
        """The machine slept: nothing proven before counts, and the chain starts anew."""
        session = self._session
        _log.warning("the machine slept; every leadership of %s is over", session)
        for driver in tuple(session.roster.leading):
            driver.end_term(Reason.MACHINE_SUSPENDED)
        slept, session.lease = session.lease, session.lease.renewed()
        slept.void()
        if session.connected:
            session.chain(-math.inf, session.timeout)
            session.link.shut()
