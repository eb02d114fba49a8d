"""A client: zkelect's own prober and watchdog over a session that is simulated.

:class:`Client` is to them what zkelect.session.session.Session is; so the pace, the gap,
the patience, the dropped connections are the library's, and not told anew here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, cast

from search.campaign import Candidate, Term
from search.connection import Dialler, Gateway
from search.evidence import Witness
from search.network import Link
from search.pipelining import Flood, PipelinedWitness
from search.timeline import Process
from zkelect.core.events import Reason
from zkelect.session import gateway as real
from zkelect.session.driver import Driver, Roster
from zkelect.session.prober import Prober
from zkelect.session.watchdog import Watchdog

if TYPE_CHECKING:
    from search.ensemble import Ensemble
    from search.log import Stand
    from zkelect.session.session import Session

__all__ = ["Client"]

_LONGEST_NAP: Final = 0.5
_SHORTEST_NAP: Final = 0.02
"""Seconds between turns at least: the watchdog may want the next one at once."""
_ROUNDING: Final = 1e-9


class _NoCallbacks:
    """A pool in which no user code runs."""

    def watch(self, now: float, patience: float) -> None:
        """Nothing to watch."""


class Client(Process):
    """A program with one session and one candidate.

    :ivar number: the session id as well.
    :ivar saw: told of each answer to a probe when it comes off the socket; ``proved`` when
        the lease has been told.
    """

    hosts = ""

    def __init__(
        self,
        ensemble: Ensemble,
        session: int,
        rate: float,
        office: list[Term],
        chance: Random,
        hops: int,
    ) -> None:
        super().__init__(ensemble.timeline, session, rate)
        scenario = ensemble.scenario
        self.ensemble = ensemble
        self.clock = self
        self.pool = _NoCallbacks()
        self.lease: Witness = Witness(self, tick=scenario.told_tick, hops=hops)
        self.lease.connect(-math.inf, scenario.created)
        self.timeout = scenario.created
        self.connected = False
        self.connected_at = -math.inf
        self.over = False
        self.saw: Callable[[Client], None] = lambda _: None
        self.proved: Callable[[Client], None] = lambda _: None
        self._connections = 0
        self._turn_at = math.inf
        self.candidate = Candidate(self, office, chance)
        self.driver = cast(Driver, self.candidate)
        self.roster = Roster(self.kick)
        self.link = Dialler(self, ensemble.servers, chance)
        self.gateway = Gateway(self, scenario.handing, chance)
        self.prober: Prober | Flood = Prober(
            cast(real.Gateway, self.gateway), self, self.roster, self._answered
        )
        self._watchdog = Watchdog(cast("Session", self))

    def pipeline(self) -> None:
        """Do what the library must never do; see search.pipelining."""
        scenario = self.ensemble.scenario
        self.lease = PipelinedWitness(self, tick=scenario.told_tick, hops=1)
        self.lease.connect(-math.inf, scenario.created)
        self.prober = Flood(self, self._answered)

    # --- turns, as the session's ticker makes them -------------------------------------------

    def kick(self) -> None:
        """Take a turn now."""
        self._turn_by(self.timeline.now)

    def _turn_by(self, instant: float) -> None:
        if instant < self._turn_at:
            self._turn_at = instant
            self.timeline.at(instant, self, self._turn)

    def _turn(self) -> None:
        if self.timeline.now < self._turn_at or self.over:
            return
        self._turn_at = math.inf
        now = self.boottime()
        wanted = min(self._watchdog.watch(now), now + _LONGEST_NAP)
        self._turn_by(max(wanted / self.rate + _ROUNDING, self.timeline.now + _SHORTEST_NAP))

    def _answered(self, counts: bool) -> None:
        """Hear from the prober."""
        self.kick()
        if counts:
            self.candidate.prove()
            self.proved(self)

    # --- what the servers tell ---------------------------------------------------------------

    def welcomed(
        self, link: Link, alive: bool, timeout: float, zxid: int, roll: tuple[Stand, ...]
    ) -> None:
        """Hear the answer to the handshake."""
        if not self.link.has(link):
            return
        if not alive:
            self._expire()
            return
        self.link.welcomed, self.link.zxid = True, max(zxid, self.link.zxid)
        self.connected, self.connected_at = True, self.boottime()
        self._connections += 1
        self.lease.connect(self.link.started, timeout)
        self.prober.begin(self.lease, self._connections)
        self.timeout = self.lease.timeout
        self.link.keep_alive(self.link.visit)
        self.candidate.told(roll)
        self.kick()

    def answered(self, link: Link, zxid: int) -> None:
        """Hear that a request was committed."""
        if self.link.has(link):
            self.link.zxid = max(zxid, self.link.zxid)
            if self.gateway.arrived():
                self.saw(self)

    def told(self, link: Link, roll: tuple[Stand, ...]) -> None:
        """Hear that the roll has changed."""
        if self.link.has(link):
            self.candidate.told(roll)

    def ponged(self, link: Link) -> None:
        """Hear the answer to a ping."""
        self.link.ponged(link)

    def lost(self, link: Link) -> None:
        """Hear that a server has closed the connection."""
        if self.link.has(link):
            self.link.shut()

    # --- changes -----------------------------------------------------------------------------

    def suspended(self) -> None:
        """The connection is gone."""
        self.connected = False
        self.prober.halt()
        self.gateway.forget()
        self.candidate.suspended()

    def _expire(self) -> None:
        self.over = True
        self.suspended()
        self.lease.void()
        self.candidate.end_term(Reason.EXPIRED)
