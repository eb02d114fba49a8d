"""The asking side of a switchover: write what is wanted, wait for what becomes of it."""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from zkelect.core.acts import ActKind
from zkelect.core.handover import (
    Handover,
    HandoverState,
    decode_handover,
    handover_path,
)
from zkelect.core.paths import check_name
from zkelect.errors import (
    ElectionPaused,
    ForeignCandidate,
    NobodyLeads,
    NotStanding,
    RequestFailed,
    SwitchoverFailed,
    SwitchoverInProgress,
    ZkelectError,
)
from zkelect.session.acts import new_act
from zkelect.session.gateway import Failure, Fault
from zkelect.session.handovers import read_handover, write_handover
from zkelect.session.limits import check_timeout
from zkelect.session.observer import Observer
from zkelect.session.operator import operator
from zkelect.session.records import read_record
from zkelect.session.roll import Candidate, read_leader, read_roll

if TYPE_CHECKING:
    from zkelect.core.acts import Act
    from zkelect.core.znodes import Dialect
    from zkelect.session.session import Session

__all__ = ["Petition"]

_log: Final = logging.getLogger("zkelect")
_TRIES: Final = 5
_STOP_INTERVAL: Final = 0.1
_FAREWELL: Final = 1.0
"""Seconds for the last request of somebody who was told to stop."""


class _Page:
    """Follows the page of one switchover; under the session's lock."""

    def __init__(self, session: Session, path: str) -> None:
        self._session = session
        self._path = handover_path(path)
        self.answer: Handover | Failure | None = None

    def __enter__(self) -> Self:
        with self._session.lock:
            self._session.observers[self] = None
            self.resumed()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._session.foreign:
            with self._session.lock:
                self._session.observers.pop(self, None)
                self._session.gateway.unwatch(self._path, self)

    def resumed(self) -> None:
        """Read and watch it, on this connection."""
        if self._session.connected:
            heard = (self, lambda _: self.resumed())
            self._session.gateway.get(self._path, self._read, watch=heard)

    def ended(self) -> None:
        """Hear that the session is over; whoever waits looks by itself."""

    def _read(self, answer: Any) -> None:
        if isinstance(answer, Failure):
            self.answer = self.answer if answer.fault is Fault.UNKNOWN else answer
        else:
            self.answer = decode_handover(answer[0], answer[1].version)
        self._session.changed.notify_all()


class Petition:
    """One request for a switchover.

    :param to: name or znode of who shall lead. :param timeout: seconds for the leader to
        bring it about. :param stop: withdraw when it is set.
    """

    def __init__(
        self,
        session: Session,
        path: str,
        dialect: Dialect,
        to: str,
        *,
        timeout: float,
        why: str,
        by: str | None,
        stop: threading.Event | None = None,
    ) -> None:
        check_timeout(timeout, endless=False)
        self._session = session
        self._path = path
        self._dialect = dialect
        self._to = to
        self._timeout = timeout
        self._why = why
        self._by = operator() if by is None else by
        self._stop = stop
        for argument, text in (("to", to), ("why", why), ("by", self._by)):
            check_name(text, argument)
        self._deadline = session.now() + timeout + session.timeout

    def bring_about(self) -> Candidate:
        """Ask, and wait until the target leads.

        The leader counts the timeout on its own clock, so it is given one session timeout
        more to say how it ended, and for its body to give way.
        """
        leader, target = self._choose()
        if leader.node == target.node:
            return leader
        handover = self._ask(leader, target)
        _log.info("%s: asked %r for a %s", self._path, leader.name, handover)
        try:
            return self._await(handover)
        except SwitchoverFailed:
            raise
        except BaseException as error:
            with suppress(ZkelectError):
                self._withdraw(handover, f"{self._by} stopped waiting ({type(error).__name__})")
            raise

    # --- asking ------------------------------------------------------------------------------

    def _choose(self) -> tuple[Candidate, Candidate]:
        """Return leader and target, if they can change places at all."""
        where = (self._session, self._path, self._dialect, self._left())
        roll, leader = read_roll(*where), read_leader(*where)
        foreign = next((candidate for candidate in roll if candidate.foreign), None)
        if foreign is not None:
            raise ForeignCandidate(self._path, "switch over", foreign.node, _STUBBORN)
        if leader is None:
            raise NobodyLeads(self._path)
        return leader, self._find(roll)

    def _find(self, roll: tuple[Candidate, ...]) -> Candidate:
        """Look among the names first; of several the first in line."""
        for key in ("name", "node"):
            for candidate in roll:
                if getattr(candidate, key) == self._to:
                    return candidate
        raise NotStanding(self._path, self._to, [candidate.name for candidate in roll])

    def _ask(self, leader: Candidate, target: Candidate) -> Handover:
        """Write the page at the version read, and wake the leader, in one commit."""
        assert leader.token is not None  # read_leader tells of ours only then
        wish = Handover(
            id=uuid.uuid4().hex,
            target=target.node,
            name=target.name,
            leader=leader.node,
            token=leader.token,
            timeout=self._timeout,
            by=self._by,
            why=self._why,
        )
        act = new_act(ActKind.SWITCHOVER, self._why, self._by, target.name)
        for _ in range(_TRIES):
            version = self._free_page(wish)
            if version is None or self._write(attrs.evolve(wish, version=version), act):
                return wish
        raise RequestFailed(handover_path(self._path), "write", f"changed {_TRIES} times meanwhile")

    def _free_page(self, wish: Handover) -> int | None:
        """Return the version to write at; None: it is written, by a try whose answer was lost."""
        record = read_record(self._session, self._path, "switch over", self._left())
        if record.paused is not None:
            raise ElectionPaused(self._path, record.paused)
        present, version = self._read()
        if present is not None and present.id == wish.id:
            return None
        if present is None or present.leader != wish.leader or not present.pending:
            return version
        raise SwitchoverInProgress(self._path, present.name, present.by, present.why)

    def _read(self) -> tuple[Handover | None, int]:
        return read_handover(self._session, self._path, self._left())

    def _write(self, handover: Handover, act: Act | None = None) -> bool:
        return write_handover(self._session, self._path, handover, self._left(), act)

    def _left(self) -> float:
        return max(self._deadline - self._session.now(), _FAREWELL)

    # --- waiting -----------------------------------------------------------------------------

    def _await(self, handover: Handover) -> Candidate:
        session = self._session
        leaders = Observer(session, self._path, self._dialect, session.changed.notify_all)
        with leaders, _Page(session, self._path) as page, session.changed:
            while True:
                outcome = self._outcome(handover, leaders.leader, page.answer)
                if isinstance(outcome, Candidate):
                    return outcome
                if outcome is None and not self._is_late():
                    session.changed.wait(self._nap())
                    session.ensure_usable()
                    continue
                break
        raise self._failure(handover, outcome)

    def _outcome(
        self, ours: Handover, leader: Candidate | None, page: Handover | Failure | None
    ) -> Candidate | str | None:
        """Return who leads as wished, or why that will not be; None: neither yet."""
        if leader is not None and leader.node == ours.target:
            return leader
        if leader is not None and leader.token != ours.token:
            return f"{leader.name!r} leads instead, with {leader.token}"
        if isinstance(page, Failure):
            return f"its page cannot be read: {page}"
        if page is None:
            return None
        if page.id != ours.id:
            return f"another {page} took its place"
        return page.reason if page.state is HandoverState.WITHDRAWN else None

    def _is_late(self) -> bool:
        stopped = self._stop is not None and self._stop.is_set()
        return stopped or self._session.now() >= self._deadline

    def _nap(self) -> float:
        left = max(self._deadline - self._session.now(), 0.0)
        return left if self._stop is None else min(left, _STOP_INTERVAL)

    def _failure(self, ours: Handover, reason: str | None) -> SwitchoverFailed:
        """Say why, and leave no page behind that could still come true."""
        told = self._impatience() if reason is None else reason
        state = self._withdraw(ours, told)
        if reason is None and state is HandoverState.DONE:
            told += "; the leader has resigned for it, so the target leads as soon as it can"
        return SwitchoverFailed(self._path, ours.name, told)

    def _impatience(self) -> str:
        if self._stop is not None and self._stop.is_set():
            return f"{self._by} stopped waiting"
        return f"not within {self._timeout:g} s and one session timeout"

    def _withdraw(self, ours: Handover, reason: str) -> HandoverState:
        """Write that it is off, unless it is decided; return what the page says then."""
        self._deadline = self._session.now() + _FAREWELL
        for _ in range(_TRIES):
            page, version = self._read()
            if page is None or page.id != ours.id:
                return HandoverState.WITHDRAWN
            if not page.pending:
                return page.state
            off = attrs.evolve(page, state=HandoverState.WITHDRAWN, reason=reason, version=version)
            if self._write(off):
                return off.state
        return HandoverState.ASKED


_STUBBORN: Final = "does not step back to let another one pass"
