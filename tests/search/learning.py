"""Followers and observers: they serve clients, and send the news of them up."""

from __future__ import annotations

from search.log import Transaction
from search.network import Link
from search.server import Server, Visit
from search.serving import Serving, Touches

__all__ = ["Learning"]


class Learning(Serving):
    """A follower or an observer.

    :ivar touches: sessions active here since the last ping, each with its timeout. They
        reach the leader with the answer to the next ping, and die with this server.
    """

    def __init__(self, server: Server, above: Serving, link: Link) -> None:
        super().__init__(server)
        self.above = above
        self.link = link
        self.touches: Touches = {}
        self._heard = self.timeline.now

    def begin(self) -> None:
        self._watch()
        if self.ensemble.is_observer_master(self.server):
            self.start_pinging()

    def end(self, *, silently: bool) -> None:
        super().end(silently=silently)
        if silently:
            self.link.sever(self.server)
        else:
            self.link.close(self.server)

    def lost(self, link: Link) -> None:
        super().lost(link)
        if link is self.link:
            self.ensemble.look(self.server)

    def _watch(self) -> None:
        """Look for another leader when this one is silent for the sync limit."""
        if not self.current:
            return
        limit = self._heard + self.ensemble.sync_limit
        if limit <= self.timeline.now:
            self.ensemble.look(self.server)
        else:
            self.timeline.at(limit, self.server, self._watch)

    # --- from above --------------------------------------------------------------------------

    def pinged(self) -> None:
        """Answer, and hand over who was active; from now on only the answer has it."""
        self._heard = self.timeline.now
        touches, self.touches = self.touches, {}
        self.link.tell(self.server, self.above.ponged, self.link, touches)

    def proposed(self, transaction: Transaction) -> None:
        """Write it and say so."""
        self._heard = self.timeline.now
        self.server.log.append(transaction)
        self.link.tell(self.server, self.above.acknowledged, self.link, len(self.server.log))

    def decided(self, transaction: Transaction) -> None:
        """Do what is agreed on, and pass it on below. Observers hear of nothing else."""
        self._heard = self.timeline.now
        server = self.server
        if not self.ensemble.votes(server):
            server.log.append(transaction)
        server.committed += 1
        for link, learner in self.learners.items():
            link.tell(server, learner.decided, transaction)
        server.apply(transaction)

    def validated(self, route: tuple[Link, ...], visit: Visit, alive: bool) -> None:
        """Tell the client, or the learner below whose client it is."""
        self._heard = self.timeline.now
        if not route:
            self.server.admit(visit, alive)
        elif (learner := self.learners.get(route[-1])) is not None:
            route[-1].tell(self.server, learner.validated, route[:-1], visit, alive)

    # --- from below --------------------------------------------------------------------------

    def touch(self, session: int) -> None:
        self.touches[session] = self.server.grants

    def validate(self, visit: Visit) -> None:
        self.link.tell(self.server, self.above.revalidate, self.link, (), visit, self.server.grants)

    def submit(self, transaction: Transaction) -> None:
        self.link.tell(self.server, self.above.forwarded, self.link, transaction)

    def ponged(self, link: Link, touches: Touches) -> None:
        """An observer's news waits here for the leader's next ping: the second hop."""
        self.touches.update(touches)

    def revalidate(self, link: Link, route: tuple[Link, ...], visit: Visit, timeout: float) -> None:
        way_back = (*route, link)
        self.link.tell(self.server, self.above.revalidate, self.link, way_back, visit, timeout)

    def forwarded(self, link: Link, transaction: Transaction) -> None:
        self.submit(transaction)

    def acknowledged(self, link: Link, index: int) -> None:
        """Never comes: who learns from a follower is an observer, and those do not vote."""
