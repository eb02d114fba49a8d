"""The held fact of leading: one token, one deadline, one end."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, Protocol

from zkelect.core.events import Reason, Stamp
from zkelect.core.lease import VOID, Lease
from zkelect.errors import LeadershipLost, LeadershipSuspended
from zkelect.session.clock import SLEPT, Clock
from zkelect.token import Token

if TYPE_CHECKING:
    from zkelect.session.committing import Batch

__all__ = ["Leadership", "Office"]


class Office(Protocol):
    """What a leadership needs of the candidate that was granted it."""

    @property
    def clock(self) -> Clock:
        """By which its lease is counted."""

    @property
    def zxid(self) -> int:
        """The latest one that the ensemble told."""

    def end_term(self, term: Stamp, reason: Reason) -> None:
        """End this term."""

    def batch(self, leadership: Leadership) -> Batch:
        """Begin a commit that needs our candidate to be there."""


_first_wait: Final = threading.Lock()


class Leadership:
    """One term of one leader. Hand it on explicitly; it never becomes another term's.

    :ivar token: the fencing token, for guarded stores.
    :ivar path: the election. :ivar name: ours in it. :ivar node: our candidate znode.
    :ivar session_id: for operators only: whoever knows it can close the session.
    """

    __slots__ = (
        "_awake",
        "_boottime",
        "_lease",
        "_monotonic",
        "_office",
        "_over",
        "_pid",
        "_progressed",
        "_proof",
        "_reason",
        "name",
        "node",
        "path",
        "session_id",
        "term",
        "token",
    )

    def __init__(
        self,
        *,
        token: Token,
        path: str,
        name: str,
        node: str,
        term: Stamp,
        lease: Lease,
        office: Office,
    ) -> None:
        self.token: Final = token
        self.path: Final = path
        self.name: Final = name
        self.node: Final = node
        self.term: Final = term
        self.session_id: Final = term.session_id
        self._lease = self._proof = lease
        self._office = office
        self._boottime = office.clock.boottime
        self._monotonic = office.clock.monotonic
        self._awake = self._boottime() - self._monotonic() + SLEPT
        self._over: threading.Event | None = None
        self._reason: Reason | None = None
        self._progressed = office.clock.boottime()
        self._pid = os.getpid()

    def __repr__(self) -> str:
        """Show path, token and how it stands; never the session id."""
        stands = self.reason or f"{self.remaining():.1f} s left"
        return f"<Leadership {self.path} {self.token} {stands}>"

    def check(self) -> Token:
        """Return the token if this very moment is proven ours; asks no server.

        :raises LeadershipLost: it is over, for good.
        :raises LeadershipSuspended: ``on_suspended="pause-at-once"``, and the link is down.
        """
        now = self._boottime()
        if now < self._lease.deadline and now - self._monotonic() < self._awake:
            return self.token
        raise self._lost()

    @property
    def deadline(self) -> float:
        """Boot-clock instant before which no successor can have been elected."""
        return self._lease.deadline

    def remaining(self) -> float:
        """Return the seconds of lease left, 0.0 when there is none.

        Before they are over no successor can exist, whatever the network does. Somebody
        from outside who closes the session or deletes the znode breaks this; then only
        the fence holds.
        """
        if self._slept():
            return 0.0
        return max(self._lease.deadline - self._boottime(), 0.0)

    @property
    def reason(self) -> Reason | None:
        """Why it ended, None while it lasts; see :class:`zkelect.Reason`."""
        if os.getpid() != self._pid:
            return Reason.FORKED
        if self._reason is None and self._slept():
            return Reason.MACHINE_SUSPENDED
        if self._reason is None and self._boottime() >= self._proof.deadline:
            return Reason.LAPSED
        return self._reason

    def wait_lost(self, timeout: float | None = None) -> bool:
        """Wait until it is over.

        :param timeout: at most so many seconds; None: as long as it takes.
        :returns: True as soon as it is over, False when the time is up first.
        """
        until = None if timeout is None else self._boottime() + timeout
        if self.reason is None and self._over is None:
            self._expect_end()
        while self.reason is None:
            left = self._proof.deadline - self._boottime()
            if until is not None:
                left = min(left, until - self._boottime())
            if until is not None and left <= 0 and self._boottime() >= until:
                return self.reason is not None
            assert self._over is not None  # expected above
            self._over.wait(max(left, 0.0))
        return True

    def progress(self) -> None:
        """Say that the body is alive; with ``stall_timeout`` silence ends the term."""
        self._progressed = self._boottime()

    @property
    def progressed(self) -> float:
        """Boot-clock instant of the last sign of progress."""
        return self._progressed

    @property
    def zxid(self) -> int:
        """The ensemble's latest zxid as this session was told; no older token lies above."""
        return self._office.zxid

    def end(self, reason: str) -> None:
        """End this term now, because a guarded store refused it or it cannot go on."""
        self._office.end_term(self.term, Reason(reason))

    def batch(self) -> Batch:
        """Begin a commit to ZooKeeper that needs our candidate to be there.

        For :class:`zkelect.stores.ZnodeFence`, which see.
        """
        return self._office.batch(self)

    # The session's side: always under its lock.

    def void(self, reason: Reason) -> None:
        """Take the leadership away; what is checked from now on fails."""
        if self._reason is None:
            self._reason = self.reason or reason  # what was visible first stays the reason
            self._lease = self._proof = VOID
            if self._over is not None:
                self._over.set()

    def pause(self) -> None:
        """Let checks fail until :meth:`resume`, without ending the term."""
        self._lease = VOID

    def resume(self) -> None:
        """Let the proven lease count again."""
        self._lease = self._proof

    def _expect_end(self) -> None:
        """Make what is set at the end; most leaderships are waited for by nobody."""
        with _first_wait:
            if self._over is None:
                self._over = threading.Event()

    def _slept(self) -> bool:
        """Whether the machine slept in this term: then its deadline is not to be trusted."""
        return self._boottime() - self._monotonic() >= self._awake

    def _lost(self) -> LeadershipLost | LeadershipSuspended:
        reason = self.reason
        if reason is None:
            return LeadershipSuspended(self.path, self.token)
        return LeadershipLost(self.path, self.token, reason)
