"""One ZooKeeper session: what is known of it, and who is told."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.security import OPEN_ACL_UNSAFE

from zkelect.core import events as ev
from zkelect.core.lease import Lease, patience_of
from zkelect.errors import (
    AuthenticationFailed,
    InvalidArgument,
    Misuse,
    SessionClosed,
    SessionForked,
    ZkelectError,
)
from zkelect.session import wire
from zkelect.session.access import parse_acl
from zkelect.session.clock import Clock, SystemClock
from zkelect.session.driver import Roster, Watcher
from zkelect.session.forks import enrol, strike_off
from zkelect.session.greenlets import refuse_patched_threads
from zkelect.session.handler import ObservedSocket
from zkelect.session.limits import check_session, check_timeout
from zkelect.session.link import AdoptedLink, Link
from zkelect.session.pool import CallbackPool
from zkelect.session.prober import Prober
from zkelect.session.restarts import Restarts
from zkelect.session.ticker import Ticker, Timer
from zkelect.session.uuids import new_uuid
from zkelect.session.watchdog import Watchdog

__all__ = ["Session"]

_log: Final = logging.getLogger("zkelect.session")
_CLOSE_TIMEOUT: Final = 2.0
"""Seconds for the servers to answer a close, which is queued behind our deletes."""


class Session:
    """A session with an ensemble, for any number of elections; made by :func:`connect`.

    A context manager: leaving the block closes it, and its candidates leave the queues.

    :ivar hosts: the servers, in canonical form.
    :ivar timeout: the smallest session timeout granted in the life of the session, seconds.
    :ivar session_id: None while there is none.
    """

    def __init__(
        self,
        *,
        hosts: str,
        session_timeout: float,
        make_link: Callable[[Session], Link],
        acl: Sequence[Any],
        tick_time: float | None = None,
        hops: int = 1,
        schemes: tuple[str, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        self.hosts: Final = hosts
        self.schemes: Final = schemes
        self.lock: Final = threading.RLock()
        self.changed: Final = threading.Condition(self.lock)
        self.clock: Final = SystemClock() if clock is None else clock
        self.lease: Lease = Lease(tick=tick_time, hops=hops)
        self.timeout: float = session_timeout
        self.session_id: int | None = None
        self.connected: bool = False
        self.connected_at: float = -math.inf
        self._zxid = 0
        self.causes: dict[str, Exception] = {}
        self.fatal: ZkelectError | None = None
        self.paused: list[Callable[[], None]] = []
        self.observers: dict[Watcher, None] = {}
        self.pool: CallbackPool = CallbackPool(self.clock.boottime)
        self._new_lease = lambda: Lease(tick=tick_time, hops=hops)
        self._owner = os.getpid()
        self._closed = False
        self._turned = False
        self._observed: ObservedSocket | None = None
        self._connections = 0
        self._restarts = Restarts(self)
        self._suspended_at = -math.inf
        self._ticker = Ticker(self.lock, self.clock, Watchdog(self).watch, f"zkelect {hosts}")
        self.roster: Final = Roster(self._ticker.kick)
        self.link: Final = make_link(self)
        self.gateway: Final = self.link.gateway(self.clock, acl, self.deliver)
        self.prober: Final = Prober(self.gateway, self.clock, self.roster, self._answered)
        enrol(self)

    # --- what users see ------------------------------------------------------------------

    @classmethod
    def adopt(
        cls,
        client: KazooClient,
        *,
        session_timeout: float,
        tick_time: float | None = None,
        acl: Sequence[str] | None = None,
    ) -> Self:
        """Use a started kazoo client of the application; :func:`zkelect.connect` is better.

        Weaker than a session of our own: the application's requests hide a dead link
        from kazoo, and it cannot be dropped at once, so a lease may run out where a
        reconnect would have saved it. It is never counted longer than it holds.

        :param client: connected, not read-only, with kazoo's threading handler.
        :param session_timeout: the smallest timeout any server has granted this session,
            seconds; kazoo does not tell it, so it must be known from the servers' limits.
        """
        refuse_patched_threads()
        check_session(session_timeout, tick_time)
        link = AdoptedLink(client)
        session = cls(
            hosts=link.hosts,
            session_timeout=session_timeout,
            make_link=lambda _: link,
            acl=parse_acl(acl, None) if acl is not None else client.default_acl or OPEN_ACL_UNSAFE,
            tick_time=tick_time,
        )
        session.begin()
        session.take_over(session_timeout)
        return session

    def __enter__(self) -> Self:
        """Return the session itself."""
        self.ensure_usable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Show hosts and state, never the session id."""
        state = "connected" if self.connected else "suspended"
        return f"<Session {self.hosts} {'closed' if self._closed else state}>"

    @property
    def zxid(self) -> int:
        """The highest zxid that the ensemble has told this session."""
        return max(self._zxid, self.link.zxid)

    @property
    def foreign(self) -> bool:
        """Whether this process is a fork of the one whose session it is."""
        return os.getpid() != self._owner

    @property
    def closed(self) -> bool:
        """Whether this program has closed it."""
        return self._closed

    @property
    def ended(self) -> bool:
        """Whether it can never be used again: closed, or refused by the servers."""
        return self._closed or self.fatal is not None

    def credentials(self) -> tuple[int, bytes]:
        """Return session id and password, for tests that end it as a server would.

        :raises Misuse: there is no connection now, so nobody knows whether there is a session.
        """
        self.ensure_usable()
        if (found := self.link.credentials) is None:
            raise Misuse(f"{self.hosts}: not connected now, so no session is known; ask later")
        return found

    def close(self, timeout: float | None = None) -> None:
        """End every leadership of this session, then the session; harmless when closed.

        While a body still runs its znode stays: the session is then not closed but left
        to expire, so that nobody is elected over running work.

        :param timeout: how long to wait for bodies to return, seconds; a fifth of the
            session timeout when None.
        """
        check_timeout(timeout)
        if self.foreign:
            return
        with self.lock:
            if self._closed:
                return
            self._closed = True
            self._tell_ended()
            for driver in tuple(self.roster.standing):
                driver.close()
            patience = min(patience_of(self.timeout), 2.0) if timeout is None else timeout
            caller = self.pool.current_lane()
            idle = self.changed.wait_for(lambda: self.roster.all_returned(caller), patience)
            left = patience if idle and self.connected else 0.0
            self.changed.wait_for(self.roster.all_left, left)
            self.lease.void()
            self._ticker.stop()
            release = idle and self.connected
            self._leave_if_done()
        self.link.stop(release=release, timeout=_CLOSE_TIMEOUT if timeout is None else timeout)
        self._ticker.join(patience)
        self.pool.close()
        strike_off(self)

    # --- what elections need -----------------------------------------------------------------

    def ensure_usable(self) -> None:
        """Raise unless this session can be used here and now."""
        if self.foreign:
            raise SessionForked(self._owner, os.getpid())
        if self._closed:
            raise SessionClosed(self.hosts)
        if self.fatal is not None:
            raise self.fatal
        refuse_patched_threads()  # also when it was patched after it had connected

    def ensure_waitable(self) -> None:
        """Raise unless a thread may wait here for an answer: somebody must let it come."""
        self.ensure_usable()
        if self._turned:
            raise Misuse(
                f"{self.hosts}: in this ensemble nothing happens by itself, so a call that waits "
                "would wait for ever; start() and listen(), then let it settle()"
            )

    def now(self) -> float:
        """Return the present boot-clock instant."""
        return self.clock.boottime()

    def call_at(self, at: float, call: Callable[[], None]) -> Timer:
        """Call at an instant, on the session's thread, under its lock."""
        return self._ticker.call_at(at, call)

    def hurry(self) -> None:
        """Let the next probe go out now."""
        self.prober.hurry()
        self._ticker.kick()

    def deliver(self, call: Callable[..., None], *args: Any) -> None:
        """Call under the lock.

        What fails there would be lost, and somebody might wait for it for ever; a new
        connection asks again for all that is still wanted.
        """
        with self.lock:
            try:
                call(*args)
            except Exception:
                if self._turned:
                    raise  # who turns the clock by hand hears it at once
                _log.exception("news of the servers was lost; the connection is dropped for it")
                self.link.shut()

    # --- how it begins -----------------------------------------------------------------------

    def begin(self, *, threaded: bool = True) -> None:
        """Start the session's thread and let kazoo connect.

        :param threaded: False for a clock that somebody turns by hand; see :meth:`turn`.
        """
        self._turned = not threaded
        if threaded:
            self._ticker.start()
        self.link.start(self._listen)

    def turn(self) -> float:
        """Do what is due now and return the instant of the next turn, without a thread."""
        with self.lock:
            return self._ticker.turn()

    def take_over(self, session_timeout: float) -> None:
        """Begin with a connection whose handshake nobody observed: it proves nothing."""
        found = self.link.credentials
        if found is None:
            raise InvalidArgument("client", self.link.client, "a connected client")
        with self.lock:
            self._open(found[0], -math.inf, session_timeout)

    # --- observer: on kazoo's thread ---------------------------------------------------------

    def welcomed(self, connection: ObservedSocket, response: wire.ConnectResponse) -> None:
        """A server answered the handshake; kazoo's state follows on the same thread."""
        with self.lock:
            self._observed = connection

    def replied(self, connection: ObservedSocket, header: wire.ReplyHeader) -> None:
        """Keep the highest zxid that the ensemble told.

        A server that does not have our session leaves requests of unknown outcome on a
        connection that stays; only a new one tells where we are.
        """
        self._zxid = max(self._zxid, header.zxid)
        if header.error in (wire.SESSION_EXPIRED, wire.SESSION_MOVED):
            connection.shut()

    def unwelcome(self, server: str, cause: Exception) -> None:
        """Keep why a server could not be used, for the error message."""
        with self.lock:
            self.causes[server] = cause

    # --- kazoo's states ----------------------------------------------------------------------

    def _listen(self, state: str) -> None:
        self.deliver(self._hear, state)

    def _hear(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._welcome()
        elif state == KazooState.SUSPENDED:
            self._suspend()
        else:
            self._lose()
        self._leave_if_done()
        self.changed.notify_all()
        self._ticker.kick()

    def _leave_if_done(self) -> None:
        """An adopted client keeps our znodes alive: listen until the last one is deleted."""
        if self._closed and self.roster.all_left():
            self.link.leave()

    def _welcome(self) -> None:
        observed = self._observed
        if observed is None or observed.welcome is None:
            found = self.link.credentials
            if found is not None:  # adopted: it was suspended before it reconnected
                self._open(found[0], self._suspended_at, self.timeout)
        elif observed.welcome.read_only:
            _log.warning("%s is read-only: it has no quorum, so nobody is elected", self.hosts)
        else:
            welcome = observed.welcome
            self._open(welcome.session_id, observed.started, welcome.timeout)

    def _open(self, session_id: int, started: float, timeout: float) -> None:
        """A connection is there: of the same session, or of a new one, told or not."""
        resumed, old = session_id == self.session_id, self.lease
        if not resumed:
            if self.session_id is not None:  # the old one ended without a word
                self.roster.scatter(self.timeout)
            self.lease = self._new_lease()
            self._zxid = 0  # another session may be of an ensemble that went back
        self.session_id, self.connected, self.connected_at = session_id, True, self.now()
        self._restarts.succeeded()
        self.chain(started, timeout)
        self.timeout = self.lease.timeout
        if resumed:
            self.roster.feed(ev.SessionResumed)
        else:
            self.roster.feed(lambda: ev.SessionOpened(session_id=session_id, uuid=new_uuid()))
        for observer in tuple(self.observers):
            observer.resumed()
        if not resumed:
            old.void()

    def chain(self, started: float, timeout: float) -> None:
        """Start a new chain of probes: evidence never spans two connections."""
        self._connections += 1
        self.lease.connect(started, timeout)
        self.prober.begin(self.lease, self._connections)

    def _suspend(self) -> None:
        self.connected = False
        self._suspended_at = self.now()
        self.prober.halt()
        self.gateway.drop()
        self.roster.feed(ev.SessionSuspended)

    def _lose(self) -> None:
        self.connected = False
        self.session_id = None
        self.prober.halt()
        self.gateway.drop()
        self.roster.scatter(self.timeout)
        self.roster.feed(ev.SessionExpired)
        self.lease.void()
        if self.link.ended and not self._closed:
            self._mend()

    def _mend(self) -> None:
        """kazoo has stopped: for good when we were refused, otherwise start it anew."""
        if self.link.refused:
            self.fatal = AuthenticationFailed(self.hosts, ", ".join(self.schemes) or "no")
            self.roster.fail(self.fatal)
            self._tell_ended()
        else:
            self._restarts.plan()

    # --- within ------------------------------------------------------------------------

    def _answered(self, counts: bool) -> None:
        self._ticker.kick()
        if counts:
            if self.now() < self.lease.deadline:
                self.roster.prove()
            for call in tuple(self.paused):
                call()
            self.paused.clear()

    def _tell_ended(self) -> None:
        for observer in tuple(self.observers):
            observer.ended()
        self.changed.notify_all()

    def forked(self) -> None:
        """In a forked child: everything here is the parent's."""
        self.lease.void()
        self.link.abandon()
