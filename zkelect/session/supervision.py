"""What ends a term from within: preparation too slow, a stalled body, failing health.

A hang is not a crash: a living session would keep a dead body in office for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import attrs

from zkelect.core.events import Reason
from zkelect.session.leadership import Leadership
from zkelect.session.session import Session
from zkelect.session.ticker import Timer

__all__ = ["Conditions", "OnSuspended", "Supervision"]

OnSuspended = Literal["until-deadline", "pause-at-once"]


@attrs.frozen(kw_only=True)
class Conditions:
    """What an election asks of its leader; durations in seconds."""

    prepare_timeout: float | None = None
    healthy: Callable[[], bool] | None = None
    unhealthy_after: int = 3
    stall_timeout: float | None = None
    on_suspended: OnSuspended = "until-deadline"


class Supervision:
    """Watches over one candidate's terms by timers; all but ``healthy`` under the lock.

    :param path: the election, for messages.
    """

    def __init__(self, session: Session, path: str, conditions: Conditions) -> None:
        self._session: Final = session
        self._path: Final = path
        self._conditions: Final = conditions
        self._timers: list[Timer] = []
        self._failures = 0
        self._asking = False

    def prepare(self, leadership: Leadership) -> None:
        """Limit the time between the grant and serving."""
        limit = self._conditions.prepare_timeout
        if limit is not None:
            self._after(limit, lambda: leadership.end(Reason.UNPREPARED))

    def serve(self, leadership: Leadership) -> None:
        """Watch progress and health, from now until :meth:`cease`."""
        self.cease()
        leadership.progress()
        self._watch_progress(leadership)
        if self._conditions.healthy is not None:
            self._failures, self._asking = 0, False
            self._after(self._session.timeout / 3, lambda: self._ask(leadership))

    def cease(self) -> None:
        """Stop watching: the term is over, or begins to serve."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _after(self, delay: float, call: Callable[[], None]) -> None:
        self._timers = [timer for timer in self._timers if not timer.due]
        self._timers.append(self._session.call_at(self._session.now() + delay, call))

    def _watch_progress(self, leadership: Leadership) -> None:
        limit = self._conditions.stall_timeout
        if limit is None:
            return
        left = leadership.progressed + limit - self._session.now()
        if left <= 0:
            leadership.end(Reason.STALLED)
        else:
            self._after(left, lambda: self._watch_progress(leadership))

    def _ask(self, leadership: Leadership) -> None:
        """Ask every third of the session timeout; no answer by the next time is a no."""
        if self._asking:
            self._count(leadership, well=False)
        else:
            self._asking = True
            self._session.pool.submit(
                self, f"{self._path}: healthy", lambda: self._examine(leadership)
            )
        if leadership.reason is None:
            self._after(self._session.timeout / 3, lambda: self._ask(leadership))

    def _examine(self, leadership: Leadership) -> None:
        healthy = self._conditions.healthy
        assert healthy is not None  # asked only when there is one
        well = False
        try:
            well = bool(healthy())
        finally:
            with self._session.lock:
                self._asking = False
                self._count(leadership, well=well)

    def _count(self, leadership: Leadership, *, well: bool) -> None:
        self._failures = 0 if well else self._failures + 1
        if self._failures >= self._conditions.unhealthy_after:
            leadership.end(Reason.UNHEALTHY)
