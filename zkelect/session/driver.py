"""Drives one candidate: steps its machine with what happened, performs what it says.

Everything here runs under the session's lock, on whatever thread brought the news; it
never waits and never runs user code.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any, Final, Protocol

import attrs

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Stamp
from zkelect.core.handover import Handover
from zkelect.core.lease import Lease
from zkelect.core.machine import Machine
from zkelect.core.pause import Pause
from zkelect.core.record import record_path
from zkelect.core.state import Phase, State
from zkelect.core.waves import Waves
from zkelect.errors import ZkelectError
from zkelect.session.gateway import Check, Fault
from zkelect.session.places import Places
from zkelect.session.requests import Ensemble, Requests
from zkelect.session.ticker import Timer

__all__ = ["SLICE", "Driver", "Face", "Host", "Roster", "Watcher"]

_log: Final = logging.getLogger("zkelect.session")
_news: Final = logging.getLogger("zkelect")

SLICE: Final = 64
"""Candidates checked by one probe; more take turns over successive probes."""


class Watcher(Protocol):
    """Who looks at the servers without standing."""

    def resumed(self) -> None:
        """Hear that there is a connection, perhaps of another session."""

    def ended(self) -> None:
        """Hear that there will never be one again."""


class Roster:
    """Which candidates of a session need what, so that nobody has to ask them all."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.standing: dict[Driver, None] = {}
        self.warm: dict[Driver, None] = {}
        self.first: dict[Driver, None] = {}
        self.leading: dict[Driver, None] = {}
        self.promised: dict[Driver, None] = {}
        self.places: Final = Places()
        self._waves = Waves(0.0, 0)

    def enlist(self, driver: Driver, state: State) -> None:
        """Sort a candidate in after a step; tell the watchdog of the first of its kind."""
        news = False
        for members, belongs in (
            (self.standing, state.phase is not Phase.IDLE or bool(state.doomed)),
            (self.warm, state.warm),
            (self.first, state.first),
            (self.leading, state.leads),
        ):
            if not belongs:
                members.pop(driver, None)
            elif driver not in members:
                news = news or not members
                members[driver] = None
        if not state.leads:
            self.promised.pop(driver, None)
        if news:
            self._changed()

    def promise(self, driver: Driver) -> bool:
        """Check the record of a new leader by each probe from now on, if there is room.

        So far each has checked it, for all had room. Then nothing renews its lease once the
        record has changed, until it has read what it says; see :mod:`zkelect.core.eviction`.
        """
        if len(self.warm) - (driver in self.warm) < SLICE:
            self.promised[driver] = None
        return driver in self.promised

    def feed(self, make: Callable[[], Event]) -> None:
        """Let all who stand hear the same news, each as a value of its own."""
        for driver in tuple(self.standing):
            driver.feed(make())

    def fail(self, error: ZkelectError) -> None:
        """Tell all who stand that the session will never come back."""
        for driver in tuple(self.standing):
            driver.fail(error)

    def prove(self) -> None:
        """Tell those for whom only the lease is wanting that a probe has renewed it."""
        for driver in tuple(self.first):
            driver.prove()

    def scatter(self, timeout: float) -> None:
        """All who stand have lost their places: they come back in waves; seconds."""
        self._waves = Waves(timeout, len(self.standing))

    def rest(self) -> float:
        """Return how long one who has lost its place waits before it joins again, seconds."""
        return self._waves.rest(random.random())

    def all_returned(self, caller: object) -> bool:
        """Whether no body runs, but for the callback in whose lane the caller is."""
        return all(
            driver.machine.state.term is None or driver.lane is caller for driver in self.standing
        )

    def all_left(self) -> bool:
        """Whether nothing of ours is left on the servers, or may be made yet."""
        states = [driver.machine.state for driver in self.standing]
        return not any(state.node or state.sent or state.doomed for state in states)


class Host(Ensemble, Protocol):
    """What a driver needs of its session."""

    @property
    def lease(self) -> Lease: ...
    @property
    def timeout(self) -> float: ...
    @property
    def session_id(self) -> int | None: ...
    @property
    def connected(self) -> bool: ...
    @property
    def roster(self) -> Roster: ...
    def now(self) -> float: ...
    def call_at(self, at: float, call: Callable[[], None]) -> Timer: ...
    def hurry(self) -> None: ...


class Face(Protocol):
    """Who is told how the campaign goes; called under the session's lock."""

    def moved(self, state: State) -> None: ...
    def granted(self, grant: ev.Grant) -> None: ...
    def served(self, term: Stamp) -> None: ...
    def voided(self, term: Stamp, reason: ev.Reason) -> None: ...
    def outranked(self, term: Stamp) -> None: ...
    def kept(self, pause: Pause | None) -> None: ...
    def asked_over(self, term: Stamp, handover: Handover) -> None: ...
    def failed(self, campaign: int, error: ZkelectError) -> None: ...
    def finished(self, campaign: int) -> None: ...
    def suspended(self) -> None: ...
    def resumed(self) -> None: ...
    def closed(self) -> None: ...
    def close_book(self, node: str, reason: ev.Reason, done: Callable[[Any], None]) -> bool: ...


class Driver:
    """One candidate of one session.

    :param state: where its machine begins. :param identity: the bytes of its znode.
    :param strict: do not stand among candidates that do not see ours.
    """

    def __init__(
        self, host: Host, face: Face, state: State, identity: bytes, *, strict: bool = False
    ) -> None:
        self.machine: Final = Machine(state)
        self._host = host
        self._face = face
        self._requests = Requests(
            host,
            state.path,
            state.dialect,
            identity,
            self.feed,
            strict=strict,
            priority=state.priority,
        )
        self._events: list[Event] = []
        self._running = False
        self._rereading: Timer | None = None

    @property
    def lane(self) -> object:
        """In which lane of the callback pool this candidate's callbacks run."""
        return self._face

    def feed(self, event: Event) -> None:
        """Step the machine and do what it says; news from within waits its turn."""
        self._events.append(event)
        if self._running:
            return
        self._running = True
        try:
            while self._events:
                self._step(self._events.pop(0))
        finally:
            self._running = False

    def begin(self, campaign: int, uuid: str) -> None:
        """Start a campaign; while we were idle nobody told us about the session."""
        if self not in self._host.roster.standing:
            self.machine.state = attrs.evolve(
                self.machine.state,
                session_id=self._host.session_id,
                connected=self._host.connected,
            )
        self.feed(ev.Campaigned(campaign=campaign, uuid=uuid))

    def end_term(self, reason: ev.Reason) -> None:
        """End the present term, if there is one."""
        term = self.machine.state.term
        if term is not None:
            self.feed(ev.TermEnded(term=term, reason=reason))

    def prove(self) -> None:
        """Hear that a probe has renewed the lease."""
        self.feed(ev.Proven(stamp=self.machine.state.stamp))

    def fail(self, error: ZkelectError) -> None:
        """Hear that the session will never come back."""
        self._face.failed(self.machine.state.campaign, error)

    def close(self) -> None:
        """Leave for good: the session is about to be closed."""
        state = self.machine.state
        self.end_term(ev.Reason.CLOSED)
        self.feed(ev.Cancelled(campaign=state.campaign if state.again is None else state.again[0]))
        self._face.closed()

    def checks(self) -> list[Check]:
        """Return what a probe has to check for this candidate."""
        state = self.machine.state
        if state.node is None or state.record is None:
            return []
        return [
            Check(path=record_path(state.path), version=state.record.version),
            Check(path=self._own_path),
        ]

    def contradict(self, path: str, fault: Fault) -> None:
        """Hear that an item of a probe failed for its own reason."""
        state = self.machine.state
        if path == record_path(state.path):
            self.feed(ev.RecordTouched(stamp=state.stamp))
        elif fault is Fault.NO_NODE and state.node is not None and path == self._own_path:
            self.feed(ev.Vanished(stamp=state.stamp, node=state.node.node))

    @property
    def _own_path(self) -> str:
        state = self.machine.state
        return state.path if state.node is None else f"{state.path}/{state.node.node}"

    def _step(self, event: Event) -> None:
        leased = self._host.now() < self._host.lease.deadline
        before = self.machine.state
        effects = self.machine.step(attrs.evolve(event, leased=leased))
        after = self.machine.state
        if before.phase is not after.phase:
            self._face.moved(after)
        if _log.isEnabledFor(logging.DEBUG):
            name = type(event).__name__
            _log.debug("%s: %s, %s -> %s", after.path, name, before.phase, after.phase)
        self._tell_of_pause(before, after)
        self._tell_of_eviction(before, after, event)
        for effect in effects:
            self._perform(effect)
        if before.connected != after.connected:
            (self._face.resumed if after.connected else self._face.suspended)()
        self._host.roster.enlist(self, after)
        self._schedule_reread(after)

    def _tell_of_pause(self, before: State, after: State) -> None:
        """Once when it keeps us from leading, and once when it is over."""
        if after.kept_by is not None:
            if after.kept_by != before.kept_by:
                self._face.kept(after.kept_by)
        elif before.kept_by is not None and after.record is not None and not after.record.paused:
            self._face.kept(None)

    def _tell_of_eviction(self, before: State, after: State, event: Event) -> None:
        """Once, when it makes us go; by whom and why nothing else tells."""
        record, node = getattr(event, "record", None), before.node
        stays = after.node is node and after.phase is before.phase
        if record is None or node is None or stays:
            return
        for eviction in record.evictions:
            if eviction.node == node.node:
                _news.warning("%s: %s is %s", after.path, node.node, eviction)

    def _perform(self, effect: Effect) -> None:
        """One line for each effect there is."""
        match effect:
            case ev.Create():
                self._requests.create(effect)
            case ev.ReadRoll():
                self._requests.read_roll(effect)
            case ev.ReadRecord():
                self._requests.read_record(effect)
            case ev.MakeParent():
                self._requests.make_parent(effect)
            case ev.Commit():
                self._requests.commit(effect)
            case ev.Watch():
                self._requests.watch(effect)
            case ev.Delete():
                self._requests.delete(effect)
            case ev.Withdraw():
                self._withdraw(effect)
            case ev.Rest():
                self._rest(effect)
            case ev.Grant():
                self._host.hurry()
                self._face.granted(effect)
                self._requests.unwatch_record()  # probes tell a leader; there may be thousands
            case ev.Serve(stamp=term):
                self._face.served(term)
            case ev.ReadHandover():
                self._requests.read_handover(effect)
            case ev.HandOver(stamp=term, handover=handover):
                self._face.asked_over(term, handover)
            case ev.Outranked(stamp=term):
                self._face.outranked(term)
            case ev.Void(stamp=term, reason=reason):
                self._face.voided(term, reason)
            case ev.StartGrace():
                self._start_grace(effect)
            case ev.Fail(campaign=campaign, error=error):
                self._face.failed(campaign, error)
            case ev.Finish(campaign=campaign):
                self._requests.unwatch()
                self._face.finished(campaign)

    def _withdraw(self, effect: ev.Withdraw) -> None:
        """Delete our candidate; a leader writes the end of its term in the same commit."""

        def done(answer: Any) -> None:
            self._requests.deleted(effect, answer)

        reason = effect.reason
        if reason is None or not self._face.close_book(effect.node, reason, done):
            self._requests.delete(effect)

    def _start_grace(self, effect: ev.StartGrace) -> None:
        """The body may rightfully count on what was proven when its term ended."""
        self._host.call_at(
            self._host.lease.deadline, lambda: self.feed(ev.GraceEnded(term=effect.stamp))
        )

    def _rest(self, effect: ev.Rest) -> None:
        at = self._host.now() + self._host.roster.rest()
        self._host.call_at(at, lambda: self.feed(ev.Rested(stamp=effect.stamp)))

    def _schedule_reread(self, state: State) -> None:
        """A lost watch event must not leave anybody waiting for ever (pulsar #23125)."""
        wanted = state.leads or state.phase is Phase.WAITING
        if wanted and self._rereading is None:
            at = self._host.now() + self._host.timeout * random.uniform(3, 5)
            self._rereading = self._host.call_at(at, self._reread)
        elif not wanted and self._rereading is not None:
            self._rereading.cancel()
            self._rereading = None

    def _reread(self) -> None:
        self._rereading = None
        self.feed(ev.RollDue(stamp=self.machine.state.stamp))
