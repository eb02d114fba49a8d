"""Following who leads: told at every change, at the cost of two reads for each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from zkelect.core.record import Term, decode_term
from zkelect.core.znodes import Dialect, Entry
from zkelect.session.gateway import Failure, Fault
from zkelect.session.lookout import Lookout
from zkelect.session.pages import error_of
from zkelect.session.records import never_stood
from zkelect.session.roll import Candidate, leader_of
from zkelect.session.terms import term_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.session.session import Session

__all__ = ["Observer"]


class Observer(Lookout[Candidate]):
    """Watches two znodes: the present term, and the candidate of the leader it names.

    So joins and leaves behind the leader cost nothing. Between two reads leaders may come
    and go unseen; but those that are seen are seen in their order, because one server
    after the other is read on one session, and a session never goes back in time
    (ZooKeeper Programmer's Guide, "Consistency Guarantees").

    :ivar told_at: the boot-clock instant at which what is known was asked, or told by a watch.
    """

    def __init__(
        self, session: Session, path: str, dialect: Dialect, changed: Callable[[], None]
    ) -> None:
        super().__init__(session, changed)
        self.told_at: float = 0.0
        self._gateway = session.gateway
        self._path = path
        self._dialect = dialect
        self._term: Term | None = None

    @property
    def leader(self) -> Candidate | None:
        """Who led at the last read, None when nobody did."""
        return self.value

    @property
    def age(self) -> float:
        """Seconds since what is known was so; 0.0 while it is fresh."""
        with self.session.lock:
            return 0.0 if self.fresh else max(self.session.now() - self.told_at, 0.0)

    def read(self) -> None:
        read = partial(self._term_read, self.session.now())
        self.ask(self._gateway.get, term_path(self._path), read, self._hear_term)

    def unwatch(self) -> None:
        self._gateway.unwatch(term_path(self._path), self)
        self._unwatch_leader()

    def _unwatch_leader(self) -> None:
        if self._term is not None:
            self._gateway.unwatch(self._node(self._term), self)

    def _node(self, term: Term) -> str:
        return f"{self._path}/{term.node}"

    def _term_read(self, asked: float, answer: Any) -> None:
        if isinstance(answer, Failure):
            self._refuse(answer, asked)
            return
        term = decode_term(answer[0])
        if term is None:
            self._tell(None, None, asked)
        elif self._is_same_leader(term):
            self._tell(term, self._leader(term), asked)  # its phase; it is watched already
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
            read = partial(self._leader_read, term, asked)
            self.ask(self._gateway.exists, self._node(term), read, self._hear_leader)

    def _leader_read(self, term: Term, asked: float, stat: Any) -> None:
        if self._term is None or self._term.token != term.token:
            return  # another one was read meanwhile, or none
        if isinstance(stat, Failure):
            self._refuse(stat, asked)
            return
        there = stat is not None and stat.czxid == term.token.czxid
        self._tell(term, self._leader(term) if there else None, asked)

    def _hear_term(self, _: bool) -> None:
        self.read()

    def _hear_leader(self, deleted: bool) -> None:
        """The leader's znode is gone: nobody leads until the next term is written."""
        if deleted:
            self._tell(self._term, None, self.session.now())
        else:
            self._watch_leader(self.session.now())

    def _tell(self, term: Term | None, leader: Candidate | None, asked: float) -> None:
        self._term, self.told_at = term, asked
        self.show(leader)

    def _refuse(self, failure: Failure, asked: float) -> None:
        if failure.fault is Fault.UNKNOWN:
            return  # the link is gone; everything is looked at again when it is back
        if failure.fault is not Fault.NO_NODE:
            self.fail(error_of(self.session, term_path(self._path), "read", failure))
        elif self.known:
            self._tell(None, None, asked)  # deleted under us: the slow look finds a new one
        else:
            error = never_stood(self._path)
            error.__cause__ = failure.cause
            self.fail(error)
