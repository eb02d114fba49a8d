"""Performs one candidate's effects on ZooKeeper, and feeds back what happened.

Everything here runs under the session's lock, on whatever thread brought the news; it
never waits and never runs user code.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections import deque
from collections.abc import Callable
from posixpath import dirname
from typing import Any, Final, Protocol

import attrs

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Stamp
from zkelect.core.lease import Lease
from zkelect.core.machine import Machine
from zkelect.core.record import Record, decode_record, encode_record, record_path
from zkelect.core.state import State
from zkelect.errors import (
    PermissionDenied,
    RequestFailed,
    SequenceExhausted,
    ServerTooOld,
    ZkelectError,
)
from zkelect.session.gateway import Check, Failure, Fault, Gateway, Stat
from zkelect.session.terms import TermBook, history_path, term_path
from zkelect.session.ticker import Timer

__all__ = ["Driver", "Face", "Host", "Roster"]

_log: Final = logging.getLogger("zkelect.session")


class Roster:
    """Which candidates of a session need what, so that nobody has to ask them all."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.warm: dict[Driver, None] = {}
        self.first: dict[Driver, None] = {}
        self.leading: dict[Driver, None] = {}

    def enlist(self, driver: Driver, state: State) -> None:
        """Sort a candidate in after a step; tell the watchdog when that is news."""
        news = False
        for members, belongs in (
            (self.warm, state.warm),
            (self.first, state.first),
            (self.leading, state.leads),
        ):
            if belongs and driver not in members:
                members[driver] = None
                news = True
            elif not belongs:
                members.pop(driver, None)
        if news:
            self._changed()


class Host(Protocol):
    """What a driver needs of its session."""

    @property
    def gateway(self) -> Gateway: ...
    @property
    def lease(self) -> Lease: ...
    @property
    def roster(self) -> Roster: ...
    @property
    def hosts(self) -> str: ...
    @property
    def schemes(self) -> tuple[str, ...]: ...
    def now(self) -> float: ...
    def call_at(self, at: float, call: Callable[[], None]) -> Timer: ...
    def hurry(self) -> None: ...


class Face(Protocol):
    """Who is told how the campaign goes; called under the session's lock."""

    def granted(self, grant: ev.Grant) -> None: ...
    def served(self, term: Stamp) -> None: ...
    def voided(self, term: Stamp, reason: ev.Reason) -> None: ...
    def failed(self, campaign: int, error: ZkelectError) -> None: ...
    def finished(self, campaign: int) -> None: ...
    def suspended(self) -> None: ...
    def resumed(self) -> None: ...
    def closed(self) -> None: ...
    def closing_book(self, node: str) -> tuple[TermBook, Any] | None: ...


class Driver:
    """One candidate of one session.

    :param state: where its machine begins. :param identity: the bytes of its znode.
    """

    def __init__(self, host: Host, face: Face, state: State, identity: bytes) -> None:
        self.machine = Machine(state)
        self._host = host
        self._face = face
        self._identity = identity
        self._events: deque[Event] = deque()
        self._running = False
        self._known: Record | None = None
        self._roll_timer: Timer | None = None

    @property
    def path(self) -> str:
        """The election."""
        return self.machine.state.path

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
                self._step(self._events.popleft())
        finally:
            self._running = False

    def checks(self) -> list[Check]:
        """Return what a probe has to check for this candidate."""
        state = self.machine.state
        if state.node is None or state.record is None:
            return []
        return [
            Check(path=record_path(self.path), version=state.record.version),
            Check(path=f"{self.path}/{state.node.node}"),
        ]

    def contradict(self, path: str, fault: Fault) -> None:
        """Hear that an item of a probe failed for its own reason."""
        state = self.machine.state
        if state.node is not None and path == f"{self.path}/{state.node.node}":
            if fault is Fault.NO_NODE:
                self.feed(ev.Vanished(stamp=state.stamp, node=state.node.node))
        elif path == record_path(self.path):
            self._read_record(state.stamp)

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

    def _step(self, event: Event) -> None:
        leased = self._host.now() < self._host.lease.deadline
        before = self.machine.state
        effects = self.machine.step(attrs.evolve(event, leased=leased))
        after = self.machine.state
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s: %s %s -> %s", self.path, type(event).__name__, before.phase, after.phase)
        for effect in effects:
            _PERFORM[type(effect)](self, effect)
        if before.connected != after.connected:
            (self._face.resumed if after.connected else self._face.suspended)()
        self._host.roster.enlist(self, after)
        self._schedule_reread(after)

    # --- joining ---------------------------------------------------------------------------

    def _create(self, effect: ev.Create) -> None:
        prefix = self.machine.state.dialect.prefix(effect.uuid)

        def done(answer: Any) -> None:
            if not isinstance(answer, Failure):
                path, stat = answer
                node = path.rpartition("/")[2]
                self.feed(
                    ev.Created(stamp=effect.stamp, node=node, czxid=stat.czxid, owner=stat.owner)
                )
            elif answer.fault is Fault.NO_NODE:
                self.feed(ev.ParentMissing(stamp=effect.stamp))
            elif answer.fault is Fault.NODE_EXISTS:
                self._refuse(effect, SequenceExhausted(self.path, prefix))
            else:
                self._fail(effect, answer, self.path, "create")

        self._host.gateway.create_candidate(f"{self.path}/{prefix}", self._identity, done)

    def _read_roll(self, effect: ev.ReadRoll) -> None:
        roll: list[Any] = []

        def done(record: Any) -> None:
            children = () if _is(roll[0], Fault.NO_NODE) else roll[0]
            found = self._decoded(record)
            if isinstance(children, Failure):
                self._fail(effect, children, self.path, "read")
            elif isinstance(found, Failure):
                self._fail(effect, found, record_path(self.path), "read")
            else:
                self._known = self._known if found is None else found
                self.feed(ev.Rolled(stamp=effect.stamp, children=children, record=found))

        self._host.gateway.children(self.path, roll.append)
        self._host.gateway.get(record_path(self.path), done)

    def _read_record(self, stamp: Stamp) -> None:
        def done(answer: Any) -> None:
            record = self._decoded(answer)
            if not isinstance(record, Failure):
                self.feed(ev.Recorded(stamp=stamp, record=record))

        self._host.gateway.get(record_path(self.path), done)

    def _decoded(self, answer: Any) -> Record | Failure | None:
        """Read the record from its answer; None when there is none."""
        if _is(answer, Fault.NO_NODE):
            return None
        if isinstance(answer, Failure):
            return answer
        data, stat = answer
        record = decode_record(data, stat.version)
        if record is None:
            cause = ValueError(f"{data[:80]!r} is no record of an election")
            return Failure(fault=Fault.OTHER, cause=cause)
        return record

    def _make_parent(self, effect: ev.MakeParent) -> None:
        """The record first: who finds the parent must find the record (design, section 7).

        A record that this session has seen is made anew as it was.
        """
        record = self._known or Record(uuid=uuid.uuid4().hex)
        pages = [
            (record_path(self.path), encode_record(record)),
            (term_path(self.path), b"{}"),
            (history_path(self.path), b"[]"),
            (self.path, b""),
        ]

        def make(answer: Any) -> None:
            if isinstance(answer, Failure) and answer.fault is not Fault.NODE_EXISTS:
                self._fail(effect, answer, self.path, "create")
            elif pages:
                path, data = pages.pop(0)
                self._host.gateway.create(path, data, make)
            else:
                self.feed(ev.ParentMade(stamp=effect.stamp))

        above = dirname(self.path)
        if above == "/":
            make(None)
        else:
            self._host.gateway.ensure(above, make)

    def _commit(self, effect: ev.Commit) -> None:
        def done(answer: Any) -> None:
            item = answer if isinstance(answer, Failure) else answer[0]
            if _is(item, Fault.NO_NODE):
                self.feed(ev.ParentMissing(stamp=effect.stamp))
            elif isinstance(item, Failure):
                self._fail(effect, item, self.path, "check")
            else:
                self.feed(ev.Committed(stamp=effect.stamp))

        self._host.gateway.multi([Check(path=self.path)], done)

    # --- watching ----------------------------------------------------------------------------

    def _watch(self, effect: ev.Watch) -> None:
        path = f"{self.path}/{effect.node}"

        def heard(deleted: bool) -> None:
            kind = ev.Vanished if deleted else ev.Changed
            self.feed(kind(stamp=effect.stamp, node=effect.node))

        def done(answer: Any) -> None:
            if _is(answer, Fault.DENIED):
                self._host.gateway.exists(path, seen, heard)
            else:
                seen(answer if isinstance(answer, Failure) else answer[1])

        def seen(answer: Stat | Failure | None) -> None:
            if answer is None or _is(answer, Fault.NO_NODE):
                self.feed(ev.Vanished(stamp=effect.stamp, node=effect.node))
            elif isinstance(answer, Failure):
                self._fail(effect, answer, path, "read")
            else:
                self.feed(
                    ev.Watched(
                        stamp=effect.stamp,
                        node=effect.node,
                        czxid=answer.czxid,
                        owner=answer.owner,
                    )
                )

        self._host.gateway.get(path, done, heard)

    def _schedule_reread(self, state: State) -> None:
        """A lost watch event must not leave anybody waiting for ever (pulsar #23125)."""
        wanted = state.warm or state.phase is state.phase.WAITING
        if wanted and self._roll_timer is None:
            at = self._host.now() + self._host.lease.timeout * random.uniform(3, 5)
            self._roll_timer = self._host.call_at(at, self._reread)
        elif not wanted and self._roll_timer is not None:
            self._roll_timer.cancel()
            self._roll_timer = None

    def _reread(self) -> None:
        self._roll_timer = None
        self.feed(ev.RollDue(stamp=self.machine.state.stamp))

    # --- leaving -----------------------------------------------------------------------------

    def _delete(self, effect: ev.Delete | ev.Withdraw) -> None:
        path = f"{self.path}/{effect.node}"
        self._host.gateway.delete(path, lambda answer: self._deleted(effect, answer))

    def _withdraw(self, effect: ev.Withdraw) -> None:
        book = None if effect.reason is None else self._face.closing_book(effect.node)
        if book is None:
            self._delete(effect)
        else:
            pages, term = book
            pages.close(term, str(effect.reason), lambda answer: self._deleted(effect, answer))

    def _deleted(self, effect: ev.Delete | ev.Withdraw, answer: Any) -> None:
        if not isinstance(answer, Failure) or answer.fault is Fault.NO_NODE:
            self.feed(ev.Deleted(stamp=effect.stamp, node=effect.node))
        elif answer.fault is not Fault.UNKNOWN:  # unknown: asked again after the reconnect
            error = self._translate(answer, f"{self.path}/{effect.node}", "delete")
            _log.error("%s", error)
            self.feed(ev.DeleteRefused(stamp=effect.stamp, node=effect.node, error=error))

    # --- granting, ending --------------------------------------------------------------------

    def _grant(self, effect: ev.Grant) -> None:
        self._host.hurry()
        self._face.granted(effect)

    def _start_grace(self, effect: ev.StartGrace) -> None:
        """The body may rightfully count on what was proven when its term ended."""
        self._host.call_at(
            self._host.lease.deadline, lambda: self.feed(ev.GraceEnded(term=effect.stamp))
        )

    def _rest(self, effect: ev.Rest) -> None:
        at = self._host.now() + random.uniform(0, self._host.lease.timeout / 10)
        self._host.call_at(at, lambda: self.feed(ev.Rested(stamp=effect.stamp)))

    def _serve(self, effect: ev.Serve) -> None:
        self._face.served(effect.stamp)

    def _void(self, effect: ev.Void) -> None:
        self._face.voided(effect.stamp, effect.reason)

    def _give_up(self, effect: ev.Fail) -> None:
        self._face.failed(effect.campaign, effect.error)

    def _finish(self, effect: ev.Finish) -> None:
        self._face.finished(effect.campaign)

    # --- failures ----------------------------------------------------------------------------

    def _fail(self, effect: Effect, failure: Failure, path: str, permission: str) -> None:
        """Pass on what trying again does not mend; the rest is asked anew on reconnect."""
        if failure.fault is not Fault.UNKNOWN:
            self._refuse(effect, self._translate(failure, path, permission))

    def _refuse(self, effect: Effect, error: ZkelectError) -> None:
        _log.warning("%s", error)
        self.feed(ev.Refused(stamp=effect.stamp, error=error))

    def _translate(self, failure: Failure, path: str, permission: str) -> ZkelectError:
        error: ZkelectError
        if failure.fault is Fault.DENIED:
            error = PermissionDenied(path, permission, self._host.schemes)
        elif failure.fault is Fault.UNIMPLEMENTED:
            error = ServerTooOld(self._host.hosts)
        else:
            error = RequestFailed(path, permission, str(failure))
        error.__cause__ = failure.cause
        return error


def _is(answer: Any, fault: Fault) -> bool:
    return isinstance(answer, Failure) and answer.fault is fault


_PERFORM: Final[dict[type[Effect], Callable[[Driver, Any], None]]] = {
    ev.Create: Driver._create,
    ev.ReadRoll: Driver._read_roll,
    ev.MakeParent: Driver._make_parent,
    ev.Commit: Driver._commit,
    ev.Watch: Driver._watch,
    ev.Delete: Driver._delete,
    ev.Withdraw: Driver._withdraw,
    ev.Rest: Driver._rest,
    ev.Grant: Driver._grant,
    ev.Serve: Driver._serve,
    ev.Void: Driver._void,
    ev.StartGrace: Driver._start_grace,
    ev.Fail: Driver._give_up,
    ev.Finish: Driver._finish,
}
