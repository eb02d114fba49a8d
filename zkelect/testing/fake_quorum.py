"""What an ensemble in memory agrees on: the order of transactions, and who is in session."""

from __future__ import annotations

import math
from typing import Any, Final, Protocol

import attrs

from zkelect.testing.fake_clock import VirtualClock
from zkelect.testing.fake_tree import Draft, Operation, Transaction, Znode, perform

__all__ = ["Follower", "Quorum", "SessionRecord"]

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


class Follower(Protocol):
    """A server, as the majority sees it."""

    @property
    def votes(self) -> bool:
        """Whether it runs, and the others hear of it."""

    def follow(self) -> None:
        """Apply what was committed."""

    def end_session(self, session_id: int) -> None:
        """Hear that a session has ended."""

    def report(self) -> dict[int, float]:
        """Tell the leader, once, which sessions were heard of since the last time, and when."""


class Quorum:
    """The majority. Whatever it commits, every server applies in the same order.

    The leader knows of sessions at other servers only what those report, every half tick,
    in their answers to its pings: what a server has not reported dies with it.

    :ivar tree: all znodes by path, as of the last transaction. :ivar log: all transactions.
    :ivar sessions: those that are open. :ivar servers: all there are.
    :ivar leader: who counts the sessions' time; None while there is no majority.
    """

    def __init__(self, clock: VirtualClock, tick_time: float) -> None:
        self.tree: dict[str, Znode] = {"/": Znode(czxid=0)}
        self.log: list[Transaction] = []
        self.sessions: dict[int, SessionRecord] = {}
        self.servers: list[Follower] = []
        self.leader: Follower | None = None
        self._clock = clock
        self._half_tick = tick_time / 2
        self._pinged = clock.now
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

    # --- its leader --------------------------------------------------------------------------

    def elect(self, besides: Follower | None = None) -> None:
        """Let a server lead: sessions start anew, with the timeouts of their creation.

        :param besides: rather another one than this.
        """
        voters = [server for server in self.servers if server.votes]
        if 2 * len(voters) <= len(self.servers):
            self.leader = None
            return
        self.leader = next((server for server in voters if server is not besides), voters[0])
        self._epoch, self._counter = self._epoch + 1, 0
        for session in self.sessions.values():
            session.timeout, session.touched = session.granted, self._clock.now
        for server in self.servers:
            server.follow()

    def recount(self) -> None:
        """Hear that a server has come or gone: without a majority nobody leads."""
        voters = sum(server.votes for server in self.servers)
        if self.leader is None or not self.leader.votes or 2 * voters <= len(self.servers):
            self.elect()

    def ping(self) -> None:
        """Ask the servers, every half tick, which sessions they have heard of."""
        if self._clock.now < self._pinged + self._half_tick:
            return
        self._pinged = self._clock.now
        for server in self.servers:
            for session_id, at in server.report().items():
                self.touch(session_id, at)

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
        self.touch(session_id, self._clock.now)
        return session

    def close(self, session_id: int) -> None:
        """End a session: its ephemeral znodes go in one transaction."""
        del self.sessions[session_id]
        draft = Draft(self.tree, self._number())
        draft.delete_all([path for path, at in self.tree.items() if at.owner == session_id])
        self._apply(draft.finish())
        for server in self.servers:
            server.end_session(session_id)

    def touch(self, session_id: int, at: float) -> None:
        """Hear of a session."""
        session = self.sessions.get(session_id)
        if session is not None:
            session.touched = max(session.touched, at)

    @property
    def due(self) -> float:
        """When it does something by itself: pings, or closes a session."""
        if self.leader is None:
            return math.inf
        ends = (session.touched + session.timeout for session in self.sessions.values())
        return min(self._pinged + self._half_tick, *ends, math.inf)

    def expire(self) -> None:
        """Close every session that was not heard of for its timeout."""
        if self.leader is None:
            return
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
        for server in self.servers:
            server.follow()
