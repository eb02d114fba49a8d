"""The ensemble leader: it commits, and it alone counts when sessions expire."""

from __future__ import annotations

import math

from search.log import Kind, Transaction
from search.network import Link
from search.server import Server, Visit
from search.serving import Serving, Touches
from search.tracker import SessionTracker

__all__ = ["Leading"]


class Leading(Serving):
    """The ensemble leader, or one that does not know yet that it is deposed."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.heard: dict[Link, float] = {}
        scenario = self.ensemble.scenario
        self._tracker = SessionTracker(server, scenario.tick, rounds=scenario.rounds)
        self._armed = math.inf
        self._half_ticks = 0

    def begin(self) -> None:
        """Commit the whole log, then start every session anew, with its creation's timeout."""
        self._commit(len(self.server.log))
        self._tracker.start(self.server.tree.sessions)
        for session, timeout in self.server.tree.sessions.items():
            self.ensemble.ledger.touched(session, timeout)
        self._arm()
        self.start_pinging()

    def lost(self, link: Link) -> None:
        super().lost(link)
        self.heard.pop(link, None)

    def ping(self) -> bool:
        """Ping; at every whole tick give up without a majority of one's own voters."""
        self._half_ticks += 1
        if self._half_ticks % 2 == 0 and not self._supported():
            self.ensemble.look(self.server)
            return False
        return super().ping()

    def _supported(self) -> bool:
        """Two of three: one voter that was heard within the sync limit is enough."""
        oldest = self.timeline.now - self.ensemble.sync_limit
        return any(
            heard >= oldest and self.ensemble.votes(link.peer(self.server))
            for link, heard in self.heard.items()
        )

    # --- sessions ----------------------------------------------------------------------------

    def touch(self, session: int) -> None:
        self._touch(session, self.server.grants)

    def expiry(self, session: int) -> float:
        """Return when a session would expire if nothing more were heard of it."""
        return self._tracker.expiry(session)

    def _touch(self, session: int, timeout: float) -> bool:
        alive = self._tracker.touch(session, timeout)
        if alive:
            self.ensemble.ledger.touched(session, timeout)
            self._arm()
        return alive

    def expire(self) -> None:
        for session in self._tracker.expire():
            self._propose(Transaction(Kind.CLOSE, session, decided=self.timeline.now))
        self._arm()

    def _arm(self) -> None:
        self.alarm = self._tracker.next
        if self.alarm < self._armed:
            self._armed = self.alarm
            self.timeline.at(self.alarm, self.server, self._ring)

    def _ring(self) -> None:
        """The server has attended to what is overdue already, as before every event."""
        if self.current:
            self._armed = math.inf
            self._arm()

    def validate(self, visit: Visit) -> None:
        self.server.admit(visit, self._touch(visit.session, self.server.grants))

    def ponged(self, link: Link, touches: Touches) -> None:
        self.heard[link] = self.timeline.now
        for session, timeout in touches.items():
            self._touch(session, timeout)

    def revalidate(self, link: Link, route: tuple[Link, ...], visit: Visit, timeout: float) -> None:
        self.heard[link] = self.timeline.now
        alive = self._touch(visit.session, timeout)
        link.tell(self.server, self.learners[link].validated, route, visit, alive)

    # --- transactions ------------------------------------------------------------------------

    def submit(self, transaction: Transaction) -> None:
        """Propose it, unless its session is closed or closing.

        The real one answers with an error then; the end of the connection comes anyway.
        """
        if self._tracker.is_open(transaction.session):
            self._propose(transaction)

    def forwarded(self, link: Link, transaction: Transaction) -> None:
        self.heard[link] = self.timeline.now
        self.submit(transaction)

    def _propose(self, transaction: Transaction) -> None:
        self.server.log.append(transaction)
        for link, learner in self.learners.items():
            if self.ensemble.votes(learner.server):
                link.tell(self.server, learner.proposed, transaction)

    def acknowledged(self, link: Link, index: int) -> None:
        """Commit: of three voters this one and the leader are a majority."""
        self.heard[link] = self.timeline.now
        self._commit(index)

    def _commit(self, index: int) -> None:
        server = self.server
        while server.committed < index:
            transaction = server.log[server.committed]
            server.committed += 1
            self.ensemble.ledger.committed(transaction, self.timeline.now)
            for link, learner in self.learners.items():
                link.tell(server, learner.decided, transaction)
            server.apply(transaction)
