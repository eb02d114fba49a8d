"""One candidate of one session, as the threads of a program see it.

Between the driver, which runs under the session's lock on whatever thread brings news,
and the faces users call: it holds the present leadership, wakes who waits, calls back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

import attrs

from zkelect.core import events as ev
from zkelect.core.events import Reason, Stamp
from zkelect.core.record import Term, TermPhase
from zkelect.core.state import Phase, State
from zkelect.core.znodes import Dialect
from zkelect.errors import CampaignInProgress, NotElected, ZkelectError
from zkelect.session.committing import Committer
from zkelect.session.driver import Driver
from zkelect.session.leadership import Leadership, Office
from zkelect.session.patience import Patience
from zkelect.session.session import Session
from zkelect.session.supervision import Conditions, Supervision
from zkelect.session.terms import TermBook
from zkelect.session.uuids import new_uuid
from zkelect.token import Token

__all__ = ["Attendant", "Callbacks", "Candidacy"]

_log: Final = logging.getLogger("zkelect")


class Callbacks(Protocol):
    """What :meth:`Election.listen` takes: called serially, on a thread of the library's."""

    def elected(self, leadership: Leadership) -> None:
        """We lead, and have prepared."""

    def suspended(self, leadership: Leadership) -> None:
        """The link is down; the lease still runs."""

    def deposed(self, leadership: Leadership) -> None:
        """It is over, whatever the cause; exactly once after each ``elected``."""


class Attendant(Protocol):
    """Who acts for a candidate that has no thread of its own; called under the lock."""

    def granted(self, leadership: Leadership) -> None: ...
    def voided(self, leadership: Leadership) -> None: ...
    def failed(self, error: ZkelectError) -> None: ...
    def finished(self) -> None: ...
    def closed(self) -> None: ...


class Candidacy:
    """Stands, leads and leaves for one election."""

    def __init__(
        self,
        session: Session,
        *,
        path: str,
        name: str,
        address: str,
        identity: bytes,
        dialect: Dialect,
        strict: bool = False,
        prepares: bool,
        conditions: Conditions,
    ) -> None:
        self.session: Final = session
        self.path: Final = path
        self.name: Final = name
        self.dialect: Final = dialect
        self.changed: Final = threading.Condition(session.lock)
        self.leadership: Leadership | None = None
        self.listeners: list[Callbacks] = []
        self.attendant: Attendant | None = None
        self._address = address
        self._pauses = conditions.on_suspended == "pause-at-once"
        self._supervision = Supervision(session, path, conditions)
        self._campaign = 0
        self._error: tuple[int, ZkelectError] | None = None
        self._granted = 0
        self._left = 0
        self._book = TermBook(session.gateway, path)
        self._committer = Committer(session, path)
        self._term: Term | None = None
        self._prepares = prepares
        self._told: tuple[Callbacks, ...] = ()
        state = State(path=path, dialect=dialect)
        self.driver: Final = Driver(session, self, state, identity, strict=strict)

    # --- what faces call ---------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where we stand, for pages; nothing to guard a write with."""
        if self.session.foreign:
            return Phase.IDLE
        state, leadership = self.driver.machine.state, self.leadership
        if state.leads and leadership is not None and leadership.reason is not None:
            return Phase.LEAVING  # over by its own clock; the machine hears of it in a moment
        return state.phase

    @property
    def ahead(self) -> int | None:
        """How many are before us, None while we are not in the queue."""
        state = self.driver.machine.state
        return len(state.ahead) if state.phase is Phase.WAITING else None

    @property
    def node(self) -> str | None:
        """Our candidate znode, None without one."""
        node = self.driver.machine.state.node
        return None if node is None else node.node

    def begin(self) -> int:
        """Start a campaign and return its number.

        :raises CampaignInProgress: one is under way.
        """
        self.session.ensure_usable()
        with self.session.lock:
            state = self.driver.machine.state
            if state.phase not in (Phase.IDLE, Phase.LEAVING) or state.again is not None:
                raise CampaignInProgress(self.path)
            self._campaign += 1
            self._error = None
            self.driver.begin(self._campaign, new_uuid())
            return self._campaign

    def wait_granted(self, campaign: int, patience: Patience) -> Leadership:
        """Wait for the grant.

        :raises NotElected: too late; the candidate is being withdrawn.
        """
        with self.changed:
            try:
                while not self.decided(campaign):
                    patience.wait()
                patience.heed()
                return self.outcome(campaign)
            except BaseException:
                self.cancel(campaign)
                raise

    def cancel(self, campaign: int) -> None:
        """Stop waiting; harmless when it is over. Never waits for the servers."""
        if self.session.foreign:
            return  # the lock may be held by a thread that was not forked
        with self.session.lock:
            granted = self.leadership
            self.driver.feed(ev.Cancelled(campaign=campaign))
            if granted is not None and self.driver.machine.state.term == granted.term:
                self.returned(granted)
            self.changed.notify_all()

    def prepared(self, leadership: Leadership) -> None:
        """Say that the new leader has caught up.

        :raises LeadershipLost: too late.
        """
        with self.session.lock:
            self.driver.feed(ev.Prepared(term=leadership.term))
        leadership.check()

    def end(self, leadership: Leadership, reason: Reason) -> None:
        """End a term; its body may still run."""
        self.end_term(leadership.term, reason)

    def end_term(self, term: Stamp, reason: Reason) -> None:
        """End a term by its stamp; a term that is over stays over."""
        if self.session.foreign:
            return  # the lock may be held by a thread that was not forked
        with self.session.lock:
            self.driver.feed(ev.TermEnded(term=term, reason=reason))

    def returned(self, leadership: Leadership) -> None:
        """Say that nothing of the term's work runs any more; its znode goes."""
        if self.session.foreign:
            return  # the lock may be held by a thread that was not forked
        with self.session.lock:
            self.driver.feed(ev.Returned(term=leadership.term))

    def withdraw(self) -> None:
        """Resign, or stop waiting, whichever it is."""
        if self.session.foreign:
            return  # the lock may be held by a thread that was not forked
        with self.session.lock:
            self.driver.end_term(Reason.RESIGNED)
            self.driver.feed(ev.Cancelled(campaign=self._campaign))

    def wait_left(self, timeout: float) -> bool:
        """Wait until nothing of our campaigns is left on the servers.

        :param timeout: at most so many seconds, and only while the link is up.
        """
        if self.session.foreign:
            return True
        with self.changed:
            self.changed.wait_for(self.gone, timeout)
            return self._left >= self._campaign

    def decided(self, campaign: int) -> bool:
        """Whether the campaign was won, or cannot be won any more; under the lock."""
        if self._error is not None and self._error[0] == campaign:
            return True
        return self._granted == campaign or self._left >= campaign or self.session.ended

    def gone(self) -> bool:
        """Whether nothing of our campaigns is left, or it cannot be told; under the lock."""
        return self._left >= self._campaign or not self.session.connected

    def outcome(self, campaign: int) -> Leadership:
        """Return what a campaign that is decided has come to; under the lock.

        :raises NotElected: somebody resigned for us meanwhile.
        """
        if self._error is not None and self._error[0] == campaign:
            raise self._error[1]
        self.session.ensure_usable()
        if self.leadership is None or self._granted != campaign:
            raise NotElected(self.path, None, None)
        return self.leadership  # it may be lost again by now; whoever uses it checks

    # --- what the driver tells, under the lock -------------------------------------------------

    def granted(self, grant: ev.Grant) -> None:
        """Begin a leadership."""
        assert grant.stamp.session_id is not None  # a candidate has a session
        token = Token.issue(
            lineage=grant.record.lineage,
            generation=grant.record.generation,
            czxid=grant.czxid,
            session_id=grant.stamp.session_id,
        )
        self.leadership = Leadership(
            token=token,
            path=self.path,
            name=self.name,
            node=grant.node,
            term=grant.stamp,
            lease=self.session.lease,
            office=Office(
                clock=self.session.clock,
                end=self.end_term,
                zxid=lambda: self.session.zxid,
                batch=self._committer.batch,
            ),
        )
        self._granted = self.driver.machine.state.campaign
        self._term = Term(
            token=token,
            node=grant.node,
            name=self.name,
            address=self._address,
            phase=TermPhase.PREPARING,
            since=time.time(),
        )
        if self._prepares:
            self._book.announce(self._term)
        _log.info("%s: %s is granted %s", self.path, self.name, token)
        self._supervision.prepare(self.leadership)
        if self.attendant is not None:
            self.attendant.granted(self.leadership)
        self.changed.notify_all()

    def served(self, term: Stamp) -> None:
        """Tell that the leader serves."""
        leadership = self.leadership
        assert leadership is not None and self._term is not None  # it was granted before
        self._term = attrs.evolve(self._term, phase=TermPhase.SERVING)
        self._book.announce(self._term)
        self._supervision.serve(leadership)
        self._told = tuple(self.listeners)
        self._call_back("elected", leadership)
        self.changed.notify_all()

    def voided(self, term: Stamp, reason: Reason) -> None:
        """The flag goes down first; then those who listen are told."""
        leadership = self.leadership
        assert leadership is not None
        leadership.void(reason)
        self._supervision.cease()
        _log.log(
            logging.INFO if reason is Reason.RESIGNED else logging.WARNING,
            "%s: %s is deposed (%s), %s",
            self.path,
            self.name,
            leadership.reason,
            leadership.token,
        )
        self._call_back("deposed", leadership)
        self._told = ()
        if self.attendant is not None:
            self.attendant.voided(leadership)
        self.changed.notify_all()

    def failed(self, campaign: int, error: ZkelectError) -> None:
        """The campaign cannot succeed."""
        self._error = (campaign, error)
        if self.attendant is not None:
            self.attendant.failed(error)
        self.changed.notify_all()

    def finished(self, campaign: int) -> None:
        """Nothing of the campaign is left."""
        self._left = max(self._left, campaign)
        if self.attendant is not None:
            self.attendant.finished()
        self.changed.notify_all()
        self.session.changed.notify_all()

    def closed(self) -> None:
        """The session is being closed: wake everybody."""
        if self.attendant is not None:
            self.attendant.closed()
        self.changed.notify_all()

    def suspended(self) -> None:
        """The link is down."""
        leadership = self.leadership
        if leadership is None or leadership.reason is not None:
            return
        if self._pauses:
            leadership.pause()
        self._call_back("suspended", leadership)

    def resumed(self) -> None:
        """The link is back; a paused leadership waits for the next proof."""
        leadership = self.leadership
        if leadership is not None and self._pauses:
            self.session.paused.append(leadership.resume)

    def close_book(self, node: str, reason: Reason, done: Callable[[Any], None]) -> bool:
        """Write the end of that candidate's term and delete it; False if it never led."""
        if self._term is None or self._term.node != node:
            return False
        seen = None if self.leadership is None else self.leadership.reason
        self._book.close(self._term, str(seen or reason), done)
        return True

    # --- within ----------------------------------------------------------------------------------

    def _call_back(self, name: str, leadership: Leadership) -> None:
        for callbacks in self._told:
            label = f"{self.path}: {type(callbacks).__name__}.{name}"
            call = getattr(callbacks, name)
            self.session.pool.submit(self, label, partial(call, leadership))
