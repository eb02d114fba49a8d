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
from typing import Final, Literal, Protocol

import attrs

from zkelect.core import events as ev
from zkelect.core.events import Reason, Stamp
from zkelect.core.record import Term, TermPhase
from zkelect.core.state import Phase, State
from zkelect.core.znodes import Dialect
from zkelect.errors import CampaignInProgress, NotElected, ZkelectError
from zkelect.session.driver import Driver
from zkelect.session.leadership import Leadership, Office
from zkelect.session.patience import Patience
from zkelect.session.session import Session, new_uuid
from zkelect.session.terms import TermBook
from zkelect.session.ticker import Timer
from zkelect.token import Token

__all__ = ["Attendant", "Callbacks", "Candidacy", "OnSuspended", "Terms"]

_log: Final = logging.getLogger("zkelect")

OnSuspended = Literal["until-deadline", "pause-at-once"]


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


@attrs.frozen(kw_only=True)
class Terms:
    """What an election asks of its leader; durations in seconds."""

    prepare_timeout: float | None = None
    healthy: Callable[[], bool] | None = None
    unhealthy_after: int = 3
    stall_timeout: float | None = None
    on_suspended: OnSuspended = "until-deadline"


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
        terms: Terms,
    ) -> None:
        self.session: Final = session
        self.path: Final = path
        self.name: Final = name
        self.changed: Final = threading.Condition(session.lock)
        self.leadership: Leadership | None = None
        self.listeners: list[Callbacks] = []
        self.attendant: Attendant | None = None
        self._address = address
        self._terms = terms
        self._campaign = 0
        self._error: tuple[int, ZkelectError] | None = None
        self._left = 0
        self._book: tuple[TermBook, Term] | None = None
        self._told: tuple[Callbacks, ...] = ()
        self._timers: list[Timer] = []
        self._unhealthy = 0
        self._asking = False
        with session.lock:
            state = State(
                path=path,
                dialect=dialect,
                session_id=session.session_id,
                connected=session.connected,
            )
            self.driver: Final = Driver(session, self, state, identity)
            session.drivers[self.driver] = None

    # --- what faces call ---------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where we stand, for pages; nothing to guard a write with."""
        phase = self.driver.machine.state.phase
        leadership = self.leadership
        if leadership is not None and leadership.reason is not None and phase is not Phase.IDLE:
            return Phase.LEAVING
        return phase

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
            self.driver.feed(ev.Campaigned(campaign=self._campaign, uuid=new_uuid()))
            return self._campaign

    def wait_granted(self, campaign: int, patience: Patience) -> Leadership:
        """Wait for the grant.

        :raises NotElected: too late; the candidate is being withdrawn.
        """
        with self.changed:
            try:
                while not self._decided(campaign):
                    patience.wait()
                return self._outcome(campaign)
            except BaseException:
                self.cancel(campaign)
                raise

    def cancel(self, campaign: int) -> None:
        """Stop waiting; harmless when it is over. Never waits for the servers."""
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
        with self.session.lock:
            self.driver.feed(ev.TermEnded(term=term, reason=reason))

    def returned(self, leadership: Leadership) -> None:
        """Say that nothing of the term's work runs any more; its znode goes."""
        with self.session.lock:
            self.driver.feed(ev.Returned(term=leadership.term))

    def withdraw(self) -> None:
        """Resign, or stop waiting, whichever it is."""
        with self.session.lock:
            self.driver.end_term(Reason.RESIGNED)
            self.driver.feed(ev.Cancelled(campaign=self._campaign))

    def wait_left(self, timeout: float) -> bool:
        """Wait until nothing of our campaigns is left on the servers, for so many seconds."""
        with self.changed:
            return self.changed.wait_for(lambda: self._left >= self._campaign, timeout)

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
                clock=self.session.clock, end=self.end_term, zxid=lambda: self.session.zxid
            ),
        )
        self._announce(
            Term(
                token=token,
                node=grant.node,
                name=self.name,
                address=self._address,
                phase=TermPhase.PREPARING,
                since=time.time(),
            )
        )
        _log.info("%s: %s is granted %s", self.path, self.name, token)
        self._limit_preparation(grant.stamp)
        if self.attendant is not None:
            self.attendant.granted(self.leadership)
        self.changed.notify_all()

    def served(self, term: Stamp) -> None:
        """Tell that the leader serves."""
        leadership = self.leadership
        assert leadership is not None and self._book is not None
        self._announce(attrs.evolve(self._book[1], phase=TermPhase.SERVING))
        leadership.progress()
        self._watch_health(leadership)
        self._watch_progress(leadership)
        self._told = tuple(self.listeners)
        self._call_back("elected", leadership)
        self.changed.notify_all()

    def voided(self, term: Stamp, reason: Reason) -> None:
        """The flag goes down first; then those who listen are told."""
        leadership = self.leadership
        assert leadership is not None
        leadership.void(reason)
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        _log.log(
            logging.INFO if reason is Reason.RESIGNED else logging.WARNING,
            "%s: %s is deposed (%s), %s",
            self.path,
            self.name,
            reason,
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
        self.changed.notify_all()

    def suspended(self) -> None:
        """The link is down."""
        leadership = self.leadership
        if leadership is None or leadership.reason is not None:
            return
        if self._terms.on_suspended == "pause-at-once":
            leadership.pause()
        self._call_back("suspended", leadership)

    def resumed(self) -> None:
        """The link is back; a paused leadership waits for the next proof."""
        leadership = self.leadership
        if leadership is not None and self._terms.on_suspended == "pause-at-once":
            self.session.paused.append(leadership.resume)

    def closing_book(self, node: str) -> tuple[TermBook, Term] | None:
        """Return where to write the end of the term, if that candidate led."""
        book = self._book
        return book if book is not None and book[1].node == node else None

    # --- within ----------------------------------------------------------------------------------

    def _decided(self, campaign: int) -> bool:
        if self._error is not None and self._error[0] == campaign:
            return True
        if self.session.fatal is not None or self.session.closed or self._left >= campaign:
            return True
        state = self.driver.machine.state
        return state.campaign == campaign and state.leads

    def _outcome(self, campaign: int) -> Leadership:
        if self._error is not None and self._error[0] == campaign:
            raise self._error[1]
        self.session.ensure_usable()
        leadership = self.leadership
        if leadership is None or self.driver.machine.state.term != leadership.term:
            raise NotElected(self.path, None, None)
        return leadership

    def _announce(self, term: Term) -> None:
        book = TermBook(self.session.gateway, self.path, f"{self.path}/{term.node}")
        self._book = (book, term)
        book.announce(term)

    def _call_back(self, name: str, leadership: Leadership) -> None:
        for callbacks in self._told:
            label = f"{self.path}: {type(callbacks).__name__}.{name}"
            call = getattr(callbacks, name)
            self.session.pool.submit(self, label, partial(call, leadership))

    def _after(self, delay: float, call: Callable[[], None]) -> None:
        self._timers.append(self.session.call_at(self.session.now() + delay, call))

    def _limit_preparation(self, term: Stamp) -> None:
        def check() -> None:
            if self.driver.machine.state.phase is Phase.PREPARING:
                self.end_term(term, Reason.UNPREPARED)

        if self._terms.prepare_timeout is not None:
            self._after(self._terms.prepare_timeout, check)

    def _watch_progress(self, leadership: Leadership) -> None:
        """A hang is not a crash: a living session would keep a dead body in office."""
        limit = self._terms.stall_timeout
        if limit is None:
            return
        left = leadership.progressed + limit - self.session.now()
        if left <= 0:
            self.end(leadership, Reason.STALLED)
        else:
            self._after(left, lambda: self._watch_progress(leadership))

    def _watch_health(self, leadership: Leadership) -> None:
        if self._terms.healthy is not None:
            self._unhealthy, self._asking = 0, False
            self._after(self.session.timeout / 3, lambda: self._ask_health(leadership))

    def _ask_health(self, leadership: Leadership) -> None:
        """Ask every third of the session timeout; no answer by the next time is a no."""
        if self._asking:
            self._count_health(leadership, well=False)
        else:
            self._asking = True
            label = f"{self.path}: healthy"
            self.session.pool.submit((self, "healthy"), label, lambda: self._examine(leadership))
        if leadership.reason is None:
            self._after(self.session.timeout / 3, lambda: self._ask_health(leadership))

    def _examine(self, leadership: Leadership) -> None:
        well = False
        try:
            assert self._terms.healthy is not None
            well = bool(self._terms.healthy())
        finally:
            with self.session.lock:
                self._asking = False
                self._count_health(leadership, well=well)

    def _count_health(self, leadership: Leadership, *, well: bool) -> None:
        self._unhealthy = 0 if well else self._unhealthy + 1
        if self._unhealthy >= self._terms.unhealthy_after:
            self.end(leadership, Reason.UNHEALTHY)
