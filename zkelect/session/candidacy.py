"""One candidate of one session, as the threads of a program see it.

Between the driver, which runs under the session's lock on whatever thread brings news,
and the faces users call: it holds the present leadership, wakes who waits, calls back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs

from zkelect.core import events as ev
from zkelect.core.events import Reason, Stamp
from zkelect.core.handover import Handover
from zkelect.core.lease import patience_of
from zkelect.core.paths import check_name
from zkelect.core.pause import Pause
from zkelect.core.record import Term, TermPhase
from zkelect.core.state import Phase, State
from zkelect.core.znodes import Dialect
from zkelect.errors import CampaignInProgress, NotElected
from zkelect.session.callbacks import Attendant, Callbacks
from zkelect.session.clock import Clock
from zkelect.session.committing import Batch, Committer
from zkelect.session.driver import Driver
from zkelect.session.leadership import Leadership
from zkelect.session.patience import Patience
from zkelect.session.session import Session
from zkelect.session.standby import Standby
from zkelect.session.succession import Succession
from zkelect.session.supervision import Conditions, Supervision
from zkelect.session.terms import TermBook, new_term
from zkelect.session.uuids import new_uuid

__all__ = ["Candidacy"]

_log: Final = logging.getLogger("zkelect")


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
        priority: int = 0,
        outranked: Callable[[Leadership], None] | None = None,
    ) -> None:
        self.session: Final = session
        self.path: Final = path
        self.name: Final = name
        self.dialect: Final = dialect
        self.leadership: Leadership | None = None
        self.listeners: list[Callbacks] = []
        self.attendant: Attendant | None = None
        self.standby: Standby | None = None
        self._address = address
        self._pauses = conditions.on_suspended == "pause-at-once"
        self._supervision = Supervision(session, path, conditions)
        self._campaign = 0
        self._error: tuple[int, BaseException] | None = None
        self._granted = 0
        self._left = 0
        self._book = TermBook(session.gateway, path)
        self._changed: threading.Condition | None = None
        self._committer: Committer | None = None
        self._term: Term | None = None
        self._prepares = prepares
        self._told: tuple[Callbacks, ...] = ()
        self._outranked = outranked
        self._succession: Succession | None = None
        yields = outranked is not None
        state = State(path=path, dialect=dialect, priority=priority, yields=yields)
        self.driver: Final = Driver(session, self, state, identity, strict=strict)

    # --- what faces call ---------------------------------------------------------------------

    @property
    def changed(self) -> threading.Condition:
        """Told of all news of this candidate; made when somebody waits for the first time."""
        with self.session.lock:
            if self._changed is None:
                self._changed = threading.Condition(self.session.lock)
            return self._changed

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
    def pause(self) -> Pause | None:
        """The pause that we wait behind, as far as we have heard of one."""
        state = self.driver.machine.state
        if state.phase is not Phase.WAITING or state.record is None:
            return None
        return state.record.paused

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
                raise CampaignInProgress(self.path, self.name)
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
                self.changed.wait_for(self._rests, patience_of(self.session.timeout))
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
            self._wake()

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
            self.changed.wait_for(lambda: self.gone() and self._rests(), timeout)
            return self._left >= self._campaign and self._rests()

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

    # --- what its leaderships need --------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """The session's."""
        return self.session.clock

    @property
    def zxid(self) -> int:
        """The highest zxid that the ensemble has told the session."""
        return self.session.zxid

    def batch(self, leadership: Leadership) -> Batch:
        """Begin a commit that needs our candidate to be there."""
        self.session.ensure_usable()  # before the lock: a forked child must not wait for it
        with self.session.lock:
            if self._committer is None:
                self._committer = Committer(self.session, self.path)
            return self._committer.batch(leadership)

    # --- what the driver tells, under the lock -------------------------------------------------

    def granted(self, grant: ev.Grant) -> None:
        """Begin a leadership."""
        promised = self.session.roster.promise(self.driver)
        longest = self.session.timeout if promised else None
        self._term = new_term(grant, self.name, self._address, longest)
        self.leadership = Leadership(
            token=self._term.token,
            path=self.path,
            name=self.name,
            node=grant.node,
            term=grant.stamp,
            lease=self.session.lease,
            office=self,
        )
        self._granted = self.driver.machine.state.campaign
        if self._prepares:
            self._book.announce(self._term)
        _log.info("%s: %s is granted %s", self.path, self.name, self._term.token)
        self._supervision.prepare(self.leadership)
        if self.attendant is not None:
            self.attendant.granted(self.leadership)
        self._wake()

    def served(self, term: Stamp) -> None:
        """Tell that the leader serves."""
        leadership = self.leadership
        assert leadership is not None and self._term is not None  # it was granted before
        self._term = attrs.evolve(self._term, phase=TermPhase.SERVING)
        self._book.announce(self._term)
        self._supervision.serve(leadership)
        self._told = tuple(self.listeners)
        self._call_back("elected", leadership)
        self._wake()

    def voided(self, term: Stamp, reason: Reason) -> None:
        """The flag goes down first; then those who listen are told."""
        leadership = self.leadership
        assert leadership is not None
        leadership.void(reason)
        self._supervision.cease()
        _log.log(
            logging.INFO if reason.voluntary else logging.WARNING,
            "%s: %s is deposed (%s), %s",
            self.path,
            self.name,
            leadership.reason,
            leadership.token,
        )
        if self._succession is not None:
            self._succession.stop()
            self._succession = None
        self._call_back("deposed", leadership)
        self._told = ()
        if self.attendant is not None:
            self.attendant.voided(leadership)
        self._wake()

    def kept(self, pause: Pause | None) -> None:
        """Nobody is ahead of us, and a pause keeps us from leading; None: it is over."""
        if pause is None:
            _log.info("%s: the pause is over", self.path)
        else:
            _log.warning("%s: %s is first and may not lead: %s", self.path, self.name, pause)

    def outranked(self, term: Stamp) -> None:
        """The heir has a higher priority: tell who wants to know."""
        leadership = self.leadership
        if self._outranked is not None and leadership is not None and leadership.term == term:
            self._outranked(leadership)

    def asked_over(self, term: Stamp, handover: Handover) -> None:
        """Somebody wants that another one leads: see to it."""
        if self._succession is None:
            resign = partial(self.end_term, term, Reason.SWITCHED_OVER)
            self._succession = Succession(
                self.session, self.path, self.dialect, check_name(self.name), resign
            )
        self._succession.follow(handover)

    def moved(self, state: State) -> None:
        """Who waits may have a body to run meanwhile; nobody else has."""
        if self.standby is not None:
            self.standby.moved(state)

    def fail(self, campaign: int, error: BaseException) -> None:
        """The body that ran while we waited raised: who is not ready does not go on waiting."""
        self.failed(campaign, error)
        self.driver.feed(ev.Cancelled(campaign=campaign))

    def failed(self, campaign: int, error: BaseException) -> None:
        """The campaign cannot succeed."""
        self._error = (campaign, error)
        if self.attendant is not None:
            self.attendant.failed(error)
        self._wake()

    def finished(self, campaign: int) -> None:
        """Nothing of the campaign is left."""
        self._left = max(self._left, campaign)
        if self.attendant is not None:
            self.attendant.finished()
        self._wake()
        self.session.changed.notify_all()

    def closed(self) -> None:
        """The session is being closed: wake everybody."""
        if self.attendant is not None:
            self.attendant.closed()
        self._wake()

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

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.notify_all()

    def _rests(self) -> bool:
        return self.standby is None or not self.standby.running

    def _call_back(self, name: str, leadership: Leadership) -> None:
        for callbacks in self._told:
            label = f"{self.path}: {type(callbacks).__name__}.{name}"
            call = getattr(callbacks, name)
            self.session.pool.submit(self, label, partial(call, leadership))
