"""When sessions expire, as an ensemble leader counts it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from search.timeline import Process

__all__ = ["SessionTracker"]


class SessionTracker:
    """The sessions of one term of one leader; a new leader starts each anew, with a full timeout.

    ZooKeeper rounds expiries up to its next tick. That only helps the client, and how the
    ticks lie is chance; so some histories go without.
    """

    def __init__(self, leader: Process, tick: float, *, rounds: bool) -> None:
        self._leader = leader
        self._tick = tick
        self._rounds = rounds
        self._expiries: dict[int, float] = {}
        self.next = math.inf

    def start(self, sessions: Mapping[int, float]) -> None:
        """Give each session the timeout of its creation."""
        for session, timeout in sessions.items():
            self._expiries[session] = self._expiry(timeout)
        self._look_ahead()

    def touch(self, session: int, timeout: float) -> bool:
        """Count anew, with this timeout even if it is smaller; return whether it is open.

        A session that is being closed cannot be saved any more (isClosing).
        """
        if session not in self._expiries:
            return False
        self._expiries[session] = self._expiry(timeout)
        self._look_ahead()
        return True

    def expiry(self, session: int) -> float:
        """Return when a session would expire if nothing more were heard of it."""
        return self._expiries.get(session, math.inf)

    def is_open(self, session: int) -> bool:
        """Whether requests of this session are taken."""
        return session in self._expiries

    def expire(self) -> Iterator[int]:
        """Yield each session that is overdue, once."""
        now = self._leader.timeline.now
        overdue = [session for session, at in self._expiries.items() if at <= now]
        for session in overdue:
            del self._expiries[session]
        self._look_ahead()
        yield from overdue

    def _expiry(self, timeout: float) -> float:
        shown = self._leader.boottime() + timeout
        if self._rounds:
            shown = (shown // self._tick + 1) * self._tick
        return shown / self._leader.rate

    def _look_ahead(self) -> None:
        self.next = min(self._expiries.values(), default=math.inf)
