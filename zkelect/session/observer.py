"""Following who leads: told at every change, at the cost of two reads for each."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from zkelect.core.record import Term, decode_term
from zkelect.core.znodes import Dialect, Entry
from zkelect.errors import PermissionDenied, RequestFailed, ZkelectError
from zkelect.session.gateway import Failure, Fault
from zkelect.session.records import never_stood
from zkelect.session.roll import Candidate, leader_of
from zkelect.session.session import Session
from zkelect.session.terms import term_path
from zkelect.session.ticker import Timer

__all__ = ["Observer"]


class Observer:
    """Watches two znodes: the present term, and the candidate of the leader it names.

    So joins and leaves behind the leader cost nothing. Between two reads leaders may come
    and go unseen; but those that are seen are seen in their order, because one server
    after the other is read on one session, and a session never goes back in time
    (ZooKeeper Programmer's Guide, "Consistency Guarantees").

    Everything here runs under the session's lock.

    :ivar leader: who led at the last read, None when nobody did. :ivar known: whether there
        was a read that tells. :ivar told_at: the boot-clock instant at
        which that was asked, or told by a watch.
    :param changed: called after every change, with the lock.
    """

    def __init__(
        self, session: Session, path: str, dialect: Dialect, changed: Callable[[], None]
    ) -> None:
        self.leader: Candidate | None = None
        self.known: bool = False
        self.told_at: float = 0.0
        self.error: ZkelectError | None = None
        self._session = session
        self._gateway = session.gateway
        self._path = path
        self._dialect = dialect
        self._changed = changed
        self._term: Term | None = None
        self._look = 0
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        """Begin to look."""
        with self._session.lock:
            self._session.observers[self] = None
            self.resumed()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more; watches that stay on the servers are not heard."""
        if self._session.foreign:
            return
        with self._session.lock:
            self._session.observers.pop(self, None)
            self._forget()

    @property
    def fresh(self) -> bool:
        """Whether a change would be told: the link is up, and both watches are set."""
        return self.known and self._session.connected and self._timer is not None

    def resumed(self) -> None:
        """Hear that there is a connection, perhaps of another session: look at everything."""
        if self._session.connected:
            self._forget()
            self._read_term()

    def ended(self) -> None:
        """Hear that the session is over: whoever waits is told so."""
        self._changed()

    # --- within ----------------------------------------------------------------------------

    def _forget(self) -> None:
        self._look += 1
        self._gateway.unwatch(term_path(self._path), self)
        self._unwatch_leader()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _unwatch_leader(self) -> None:
        if self._term is not None:
            self._gateway.unwatch(self._node(self._term), self)

    def _node(self, term: Term) -> str:
        return f"{self._path}/{term.node}"

    def _read_term(self) -> None:
        asked = self._session.now()
        self._ask(self._gateway.get, term_path(self._path), self._term_read, asked, self._hear_term)

    def _ask(
        self,
        request: Callable[..., None],
        path: str,
        done: Callable[[Any, float], None],
        asked: float,
        hear: Callable[[bool], None],
    ) -> None:
        """Ask and watch; what belongs to an earlier look is heard no more."""
        look = self._look

        def answered(answer: Any) -> None:
            if look == self._look:
                done(answer, asked)

        def heard(deleted: bool) -> None:
            if look == self._look:
                hear(deleted)

        request(path, answered, (self, heard))

    def _term_read(self, answer: Any, asked: float) -> None:
        if isinstance(answer, Failure):
            self._fail(answer, asked)
            return
        term = decode_term(answer[0])
        if term is None:
            self._show(None, None, asked)
        elif self._is_same_leader(term):
            self._show(term, self._leader(term), asked)  # its phase; it is watched already
        else:
            self._unwatch_leader()
            self._term = term
            self._watch_leader(asked)

    def _leader(self, term: Term) -> Candidate | None:
        entry = self._dialect.parse(term.node)
        return leader_of(term, entry) if isinstance(entry, Entry) else None

    def _is_same_leader(self, term: Term) -> bool:
        """Whether it is the one who led at the last read, and whose znode we watch."""
        leader = self.leader
        return leader is not None and self._term is not None and leader.token == term.token

    def _watch_leader(self, asked: float) -> None:
        term = self._term
        if term is not None:
            read = partial(self._leader_read, term)
            self._ask(self._gateway.exists, self._node(term), read, asked, self._hear_leader)

    def _leader_read(self, term: Term, stat: Any, asked: float) -> None:
        if self._term is None or self._term.token != term.token:
            return  # another one was read meanwhile, or none
        if isinstance(stat, Failure):
            self._fail(stat, asked)
            return
        there = stat is not None and stat.czxid == term.token.czxid
        self._show(term, self._leader(term) if there else None, asked)

    def _hear_term(self, _: bool) -> None:
        self._read_term()

    def _hear_leader(self, deleted: bool) -> None:
        """The leader's znode is gone: nobody leads until the next term is written."""
        if deleted:
            self._show(self._term, None, self._session.now())
        else:
            self._watch_leader(self._session.now())

    def _show(self, term: Term | None, leader: Candidate | None, asked: float) -> None:
        news = not self.known or leader != self.leader
        self._term, self.leader, self.known, self.told_at = term, leader, True, asked
        self.error = None
        if self._timer is None:
            self._timer = self._session.call_at(self._next_look(), self.resumed)
        if news:
            self._changed()

    def _next_look(self) -> float:
        """A lost watch event must not leave anybody with an old leader for ever."""
        return self._session.now() + self._session.timeout * random.uniform(3, 5)

    def _fail(self, failure: Failure, asked: float) -> None:
        path = term_path(self._path)
        if failure.fault is Fault.UNKNOWN:
            return  # the link is gone; everything is looked at again when it is back
        if failure.fault is Fault.NO_NODE and self.known:
            self._show(None, None, asked)  # deleted under us: the slow look finds a new one
            return
        self.error = self._error(path, failure)
        self.error.__cause__ = failure.cause
        self._changed()

    def _error(self, path: str, failure: Failure) -> ZkelectError:
        if failure.fault is Fault.NO_NODE:
            return never_stood(self._path)
        if failure.fault is Fault.DENIED:
            return PermissionDenied(path, "read", self._session.schemes)
        return RequestFailed(path, "read", str(failure))
