"""A server, whatever it is just now, and what its clients ask of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import attrs

from search.log import Kind, Stand, Transaction, Tree
from search.network import Link
from search.timeline import Process

if TYPE_CHECKING:
    from search.ensemble import Ensemble

__all__ = ["Down", "Role", "Server", "Visit", "Visitor"]


class Visitor(Protocol):
    """A client, as its server sees it."""

    def welcomed(
        self, link: Link, alive: bool, timeout: float, zxid: int, roll: tuple[Stand, ...]
    ) -> None: ...
    def answered(self, link: Link, zxid: int) -> None: ...
    def told(self, link: Link, roll: tuple[Stand, ...]) -> None: ...
    def ponged(self, link: Link) -> None: ...


@attrs.frozen(eq=False)
class Visit:
    """One connection of a client: who, which session, and the last zxid it has seen."""

    visitor: Visitor
    session: int
    link: Link
    zxid: int


class Role:
    """What a server is, until it is something else.

    :ivar serving: whether clients are taken.
    :ivar alarm: the next instant at which a session expires here.
    :ivar overdue: whether a ping is due and the thread that sends it has not come to it.
    """

    serving = False
    alarm = math.inf
    overdue = False

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ensemble = server.ensemble
        self.timeline = server.timeline

    @property
    def current(self) -> bool:
        """Whether the server is still this: timers outlive what set them."""
        return self.server.role is self

    def begin(self) -> None:
        """Be it."""

    def end(self, *, silently: bool) -> None:
        """Stop being it. ``silently``: no peer hears of it."""

    def expire(self) -> None:
        """Close the sessions that are overdue."""

    def validate(self, visit: Visit) -> None:
        """Find out whether a client's session is open; count it as a sign of life."""

    def touch(self, session: int) -> None:
        """Note a sign of life."""

    def submit(self, transaction: Transaction) -> None:
        """Have it agreed on."""

    def lost(self, link: Link) -> None:
        """Hear that another server has closed its connection."""


class Down(Role):
    """A server that is not there. ``refuses``: its machine is, and says so."""

    def __init__(self, server: Server, *, refuses: bool) -> None:
        super().__init__(server)
        self.refuses = refuses


class Server(Process):
    """One server of the ensemble.

    :ivar grants: the session timeout that it grants, seconds.
    :ivar log: what it has written; ``committed`` is how many of it everybody will have.
    """

    def __init__(self, ensemble: Ensemble, number: int, rate: float, grants: float) -> None:
        super().__init__(ensemble.timeline, number, rate)
        self.ensemble = ensemble
        self.grants = grants
        self.epoch = 0
        self.log: list[Transaction] = []
        self.committed = 0
        self.tree = Tree({})
        self.visits: dict[int, Visit] = {}
        self.role: Role = Role(self)
        self._owed_stall = 0.0

    # --- what it is --------------------------------------------------------------------------

    def become(self, role: Role, *, silently: bool = False) -> None:
        """Be something else: every connection ends with what it was."""
        self.role.end(silently=silently)
        for visit in self.visits.values():
            if silently:
                visit.link.sever(self)
            else:
                visit.link.close(self)
        self.visits.clear()
        self.role = role
        role.begin()

    def attend(self) -> None:
        """Expire sessions before anything else: the tracker is a thread of its own."""
        if self.role.alarm <= self.timeline.now:
            self.role.expire()

    def stall(self, duration: float) -> None:
        """Stall, but let an overdue ping go out first, unless the processor is starved.

        That is the meaning of J: the ping thread runs at most so late, in true time, after
        the process runs again. A second stall within J would stretch it without bound.
        """
        if self.role.overdue and not self.ensemble.scenario.starved:
            self._owed_stall = max(self._owed_stall, duration)
        else:
            super().stall(duration)

    def pay_stall(self) -> None:
        """Stall as long as was put off."""
        duration, self._owed_stall = self._owed_stall, 0.0
        if duration:
            self.stall(duration)

    # --- what clients ask --------------------------------------------------------------------

    def connect(self, visit: Visit) -> None:
        """Take a client, if it has not seen more than this server."""
        if isinstance(self.role, Down):
            if self.role.refuses:
                visit.link.close(self)
        elif not self.role.serving or visit.zxid > self.committed:
            visit.link.close(self)
        else:
            self.role.validate(visit)

    def admit(self, visit: Visit, alive: bool) -> None:
        """Answer the handshake; a read of the roll is taken to follow it at once."""
        if alive:
            self.visits[visit.session] = visit
        answer = visit.link, alive, self.grants, self.committed, self.tree.roll
        visit.link.tell(self, visit.visitor.welcomed, *answer)

    def ping(self, visit: Visit) -> None:
        """Answer a ping: by itself, with or without a quorum."""
        if self.visits.get(visit.session) is visit:
            self.role.touch(visit.session)
            visit.link.tell(self, visit.visitor.ponged, visit.link)

    def request(self, visit: Visit, transaction: Transaction) -> None:
        """Take a write, or a probe."""
        if self.visits.get(visit.session) is visit:
            self.role.touch(visit.session)
            self.role.submit(transaction)

    def lost(self, link: Link) -> None:
        """Hear that a client or another server has closed its connection."""
        for session, visit in list(self.visits.items()):
            if visit.link is link:
                del self.visits[session]
        self.role.lost(link)

    # --- what is agreed on -------------------------------------------------------------------

    def apply(self, transaction: Transaction) -> None:
        """Do what has been agreed on; events go out before the answer."""
        before = self.tree.roll
        self.tree = transaction.change(self.tree)
        visit = self.visits.get(transaction.session)
        if transaction.kind is Kind.CLOSE and visit is not None:
            del self.visits[transaction.session]
            visit.link.close(self)
        if self.tree.roll != before:
            for other in self.visits.values():
                other.link.tell(self, other.visitor.told, other.link, self.tree.roll)
        if visit is not None and visit.link is transaction.link:
            visit.link.tell(self, visit.visitor.answered, visit.link, self.committed)
