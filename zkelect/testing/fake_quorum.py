"""What an ensemble in memory agrees on: the order of transactions, and who is in session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from zkelect.testing.fake_clock import VirtualClock
from zkelect.testing.fake_tree import Draft, Operation, Transaction, Znode, perform

__all__ = ["Quorum", "SessionRecord"]

_FIRST_SESSION: Final = 0x1000_0000_0000_0000
_COUNTER_BITS: Final = 32


@attrs.define(kw_only=True, eq=False)
class SessionRecord:
    """A session as the ensemble's leader keeps it.

    :ivar granted: the timeout at its creation, which the next leader will count with.
    :ivar timeout: the timeout this leader counts with, seconds.
    :ivar touched: when it was last heard of.
    """

    session_id: int
    password: bytes
    granted: float
    timeout: float
    touched: float


class Quorum:
    """The majority. Whatever it commits, every server applies in the same order.

    :ivar tree: all znodes by path, as of the last transaction. :ivar log: all transactions.
    :ivar sessions: those that are open. :ivar follow: called after each transaction.
    :ivar closed: called with the id of each session that has ended.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.tree: dict[str, Znode] = {"/": Znode(czxid=0)}
        self.log: list[Transaction] = []
        self.sessions: dict[int, SessionRecord] = {}
        self.follow: list[Callable[[], None]] = []
        self.closed: list[Callable[[int], None]] = []
        self._clock = clock
        self._epoch = 1
        self._counter = 0
        self._sessions = 0

    @property
    def zxid(self) -> int:
        """The number of the last transaction: the leader's epoch, then a counter."""
        return self._epoch << _COUNTER_BITS | self._counter

    def commit(self, *operations: Operation) -> list[Any]:
        """Do all or none; return an answer, or a Refusal, for each."""
        transaction, answers = perform(self.tree, self._number(), operations)
        self._apply(transaction)
        return answers

    def elect(self) -> None:
        """Let another server lead: sessions start anew, with the timeouts of their creation."""
        self._epoch, self._counter = self._epoch + 1, 0
        for session in self.sessions.values():
            session.timeout, session.touched = session.granted, self._clock.now

    # --- sessions ----------------------------------------------------------------------------

    def open(self, timeout: float) -> SessionRecord:
        """Create a session; that is a transaction too."""
        self._sessions += 1
        session_id = _FIRST_SESSION + self._sessions
        session = SessionRecord(
            session_id=session_id,
            password=f"{session_id:016x}".encode("ascii"),
            granted=timeout,
            timeout=timeout,
            touched=self._clock.now,
        )
        self.sessions[session_id] = session
        self._apply(Transaction(zxid=self._number()))
        return session

    def resume(self, session_id: int, password: bytes, timeout: float) -> SessionRecord | None:
        """Return the session, if it is open and the password its own; it counts as heard of."""
        session = self.sessions.get(session_id)
        if session is None or session.password != password:
            return None
        session.timeout = timeout
        self.touch(session_id)
        return session

    def close(self, session_id: int) -> None:
        """End a session: its ephemeral znodes go in one transaction."""
        del self.sessions[session_id]
        draft = Draft(self.tree, self._number())
        draft.delete_all([path for path, at in self.tree.items() if at.owner == session_id])
        self._apply(draft.finish())
        for tell in tuple(self.closed):
            tell(session_id)

    def touch(self, session_id: int) -> None:
        """Hear of a session."""
        session = self.sessions.get(session_id)
        if session is not None:
            session.touched = self._clock.now

    @property
    def expires(self) -> float:
        """When the next session will expire, if nothing is heard of it; infinite for none."""
        ends = (session.touched + session.timeout for session in self.sessions.values())
        return min(ends, default=float("inf"))

    def expire(self) -> None:
        """Close every session that was not heard of for its timeout."""
        for session in tuple(self.sessions.values()):
            if session.touched + session.timeout <= self._clock.now:
                self.close(session.session_id)

    # --- within ------------------------------------------------------------------------------

    def _number(self) -> int:
        self._counter += 1
        return self.zxid

    def _apply(self, transaction: Transaction) -> None:
        self.log.append(transaction)
        for path, znode in transaction.changes.items():
            if znode is not None:
                self.tree[path] = znode
            else:
                self.tree.pop(path, None)
        for follow in self.follow:
            follow()
