"""Servers of a quorum: who pings whom, and how news of sessions travels up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from search.log import Transaction
from search.network import Link
from search.server import Role, Server, Visit
from search.timeline import Process

if TYPE_CHECKING:
    from search.learning import Learning

__all__ = ["Serving", "Touches"]

Touches = dict[int, float]
"""Timeouts of the sessions that were active, by session."""


class Serving(Role, ABC):
    """A server with learners below it: the leader, or a follower with an observerMasterPort."""

    serving = True

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.learners: dict[Link, Learning] = {}

    def end(self, *, silently: bool) -> None:
        for link in self.learners:
            if silently:
                link.sever(self.server)
            else:
                link.close(self.server)
        self.learners.clear()

    def lost(self, link: Link) -> None:
        self.learners.pop(link, None)

    def drop(self, learner: Process) -> None:
        """Lose a learner with everything that is under way from it."""
        for link in [link for link in self.learners if link.peer(self.server) is learner]:
            link.sever(self.server)
            self.lost(link)

    # --- pings -------------------------------------------------------------------------------

    def start_pinging(self) -> None:
        """Ping every half tick, from an instant that is chance."""
        first = self.timeline.now + self.ensemble.chance.uniform(0, self.ensemble.tick / 2)
        self.timeline.at(first, self.server, self._fall_due)

    def _fall_due(self) -> None:
        """It is time; but the adversary may stop the process just now, once."""
        if self.current and self.ensemble.falls_due(self):
            self.timeline.at(self.server.asleep_until, self.server, self._await_turn)
        else:
            self._await_turn()

    def _await_turn(self) -> None:
        """Let the thread that pings wait for the processor; others may run before it."""
        self.overdue = True
        running = self.timeline.now - self.server.slept
        self._come_to_it(running + self.ensemble.lateness())

    def _come_to_it(self, turn: float) -> None:
        """Ping when the process has run for long enough since: stalls do not count."""
        if not self.current:
            return
        missing = turn - (self.timeline.now - self.server.slept)
        if missing > 1e-9:
            self.timeline.at(self.timeline.now + missing, self.server, self._come_to_it, turn)
            return
        self.overdue = False
        self.ensemble.pinging(self)
        if self.ping():
            half = self.ensemble.tick / 2 / self.server.rate
            self.timeline.at(self.timeline.now + half, self.server, self._fall_due)
            self.server.pay_stall()

    def ping(self) -> bool:
        """Ping every learner; return whether to go on."""
        for link, learner in self.learners.items():
            link.tell(self.server, learner.pinged)
        return True

    # --- what learners send up ---------------------------------------------------------------

    @abstractmethod
    def ponged(self, link: Link, touches: Touches) -> None:
        """Take the answer to a ping, with the sessions that were active since the last one."""

    @abstractmethod
    def revalidate(self, link: Link, route: tuple[Link, ...], visit: Visit, timeout: float) -> None:
        """Take the question whether a session is open. ``route``: the way back."""

    @abstractmethod
    def forwarded(self, link: Link, transaction: Transaction) -> None:
        """Take a request of a learner's client."""

    @abstractmethod
    def acknowledged(self, link: Link, index: int) -> None:
        """Take the news that a learner has written a proposal."""
