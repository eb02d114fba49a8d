"""What the doctor has seen: plain values, of which findings are made without asking anybody.

None always stands for "not known". Times are float seconds, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from zkelect.core.orphans import Orphan, find_orphans
from zkelect.core.pause import Pause
from zkelect.core.record import Term
from zkelect.core.znodes import Entry, Roll

__all__ = [
    "WORDS",
    "Election",
    "Ensemble",
    "Facts",
    "Host",
    "Look",
    "Server",
    "Session",
    "Spread",
]

WORDS: Final = ("srvr", "conf", "mntr", "cons")
"""The four letter words that servers are asked; by default they answer only the first."""


@attrs.frozen(kw_only=True)
class Server:
    """One server of the connection string, asked by itself.

    :ivar name: host and port. :ivar problem: why it opens no session, empty when it does.
    :ivar connect: how long TCP (and TLS) took, None when it failed.
    :ivar handshake: how long a session took to open: one commit of the quorum.
    :ivar granted: the session timeout for the one that we ask for.
    :ivar least: the smallest it grants. :ivar most: the largest.
    :ivar version, mode, tick: as its four letter words tell.
    :ivar synced: how many voters follow it, when it leads.
    :ivar sessions: those connected to it.
    :ivar silent: the words it does not answer.
    """

    name: str
    problem: str = ""
    connect: float | None = None
    handshake: float | None = None
    granted: float | None = None
    least: float | None = None
    most: float | None = None
    version: str | None = None
    mode: str | None = None
    tick: float | None = None
    synced: int | None = None
    sessions: frozenset[int] | None = None
    silent: tuple[str, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether it opens sessions."""
        return not self.problem


@attrs.frozen(kw_only=True)
class Ensemble:
    """The servers, and what they hold for us.

    :ivar voters: how many the ensemble's configuration has, None when it may not be read.
    :ivar chroot: '' when there is none. :ivar chroot_exists: whether it is there.
    """

    servers: tuple[Server, ...]
    voters: int | None = None
    chroot: str = ""
    chroot_exists: bool | None = None

    @property
    def tick(self) -> float | None:
        """The largest tickTime that a server tells: the one that a lease must reckon with."""
        return max((each.tick for each in self.servers if each.tick is not None), default=None)


@attrs.frozen(kw_only=True)
class Spread:
    """How long one kind of request took.

    :ivar count: so many were sent, one after the other.
    """

    median: float
    worst: float
    count: int


@attrs.frozen(kw_only=True)
class Session:
    """A session opened as a candidate here would open it.

    :ivar problem: why there is none, empty when there is. :ivar denied: our credentials were
        the reason. :ivar tick: the servers' tickTime as we were told it.
    """

    asked: float
    granted: float | None = None
    tick: float | None = None
    schemes: tuple[str, ...] = ()
    problem: str = ""
    denied: bool = False
    reads: Spread | None = None
    commits: Spread | None = None


@attrs.frozen(kw_only=True)
class Host:
    """This machine.

    :ivar measured: for how long it was watched. :ivar pause: the longest one in that time.
    :ivar slept: since it was started, in all; None where no clock tells.
    :ivar ahead: of the ensemble leader's wall clock, negative when behind.
    :ivar doubt: how wrong that may be, to either side.
    """

    measured: float = 0.0
    pause: float = 0.0
    slept: float | None = 0.0
    ahead: float | None = None
    doubt: float = 0.0


@attrs.frozen(kw_only=True)
class Look:
    """An election at one instant.

    :ivar owners: the session of each candidate, 0 for none. :ivar names: of some.
    :ivar size: of the answer that tells the roll, in bytes.
    """

    roll: Roll
    owners: Mapping[Entry, int] = attrs.field(factory=dict)
    names: Mapping[Entry, str] = attrs.field(factory=dict)
    term: Term | None = None
    size: int = 0

    @property
    def first(self) -> Entry | None:
        """Who leads, or should."""
        return next(iter(self.roll.entries), None)

    @property
    def in_office(self) -> bool:
        """Whether the first one has written that its term has begun."""
        first, term = self.first, self.term
        if first is None or term is None:
            return False
        return term.ended is None and term.node == first.node

    @property
    def orphans(self) -> dict[Entry, Orphan]:
        """Those behind whom nobody stands."""
        return find_orphans(self.owners)


@attrs.frozen(kw_only=True)
class Election:
    """An election, looked at twice; what is wrong only for a moment is not wrong.

    :ivar exists: whether its path does. :ivar recorded: whether its record exists.
    :ivar damaged: it does, and is none. :ivar next_sequence: of the next candidate.
    :ivar acls: by path, of the election and its pages, as far as they may be read.
    :ivar denied: paths, and what we may not do there.
    :ivar sizes: of its pages, in bytes, by path.
    """

    path: str
    exists: bool
    recorded: bool = False
    damaged: bool = False
    pause: Pause | None = None
    next_sequence: int | None = None
    acls: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    denied: tuple[tuple[str, str], ...] = ()
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    before: Look | None = None
    now: Look | None = None


@attrs.frozen(kw_only=True)
class Facts:
    """All of it; what could not be looked at is None.

    :ivar hosts: as they were understood.
    """

    hosts: str
    ensemble: Ensemble
    session: Session
    host: Host | None = None
    election: Election | None = None
