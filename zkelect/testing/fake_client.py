"""kazoo's client as the session's gateway sees it, in front of servers in memory.

It keeps kazoo's threads apart as queues, since their order is what makes the hard cases:
one reads the connection and tells changes of state, one hands over answers, one hands
over watch events; each is first in, first out, and none waits for another. A create is
answered in two steps, as kazoo does it, so that a later answer can overtake it. What was
asked and not answered when a connection ends has an unknown outcome; what is asked while
there is none goes out on the next one.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from posixpath import dirname
from typing import TYPE_CHECKING, Any, Final

from zkelect.session import wire
from zkelect.session.handler import ObservedSocket
from zkelect.session.link import reply_error
from zkelect.testing.conversation import REPLIES, REQUESTS, Direction
from zkelect.testing.fake_answers import Batch, Event, Pending, Result, Socket
from zkelect.testing.fake_server import Connection, FakeServer, Handshake, News, Question, Reply
from zkelect.testing.fake_tree import Code, Create, Delete, Happened, Refusal

if TYPE_CHECKING:
    from zkelect.session.handler import Observer
    from zkelect.testing.fake_clock import MachineClock

__all__ = ["FakeClient", "State"]


_BACK_OFF: Final = 0.05
"""Seconds between two dials at least, so that nobody can connect and lose it for ever at once."""


class State(StrEnum):
    """Where a client stands; kazoo's names."""

    CONNECTING = "CONNECTING"
    CONNECTED = "CONNECTED"
    EXPIRED = "EXPIRED_SESSION"
    CLOSED = "CLOSED"


class FakeClient:
    """One client: what it asked, what it was told, and its connection.

    :ivar session: id and password, None before the first one and between two.
    :ivar former: the last connection, as long as its server may still do what came over it.
    :ivar swallows: which directions of its network swallow: "requests", "replies".
    :ivar swapped: the next server will make a new session without a word about the old one.
    :ivar heard, sent: when something came or went last. :ivar dialled: when the server was
        dialled that has not answered yet.
    :ivar answers: what the answering thread has yet to hand over. :ivar events: the same of
        the thread for watch events.
    :param choose: picks the next server to dial; None when there is none to be had.
    :param faults: see :class:`Connection`.
    """

    def __init__(
        self,
        *,
        session_timeout: float,
        clock: MachineClock,
        observer: Observer,
        choose: Callable[[FakeClient], FakeServer | None],
        faults: Callable[[Connection, str, str], bool],
    ) -> None:
        self.session_timeout = session_timeout
        self.state = State.CONNECTING
        self.session: tuple[int, bytes] | None = None
        self.last_zxid = 0
        self.connection: Connection | None = None
        self.former: Connection | None = None
        self.swallows: set[Direction] = set()
        self.swapped = False
        self.heard = self.sent = clock.boottime()
        self.dialled: float | None = None
        self.answers: deque[Callable[[], None]] = deque()
        self.events: deque[Callable[[], None]] = deque()
        self.listen: Callable[[str], None] = lambda _: None
        self._clock = clock
        self._observer = observer
        self._choose = choose
        self._faults = faults
        self._granted = session_timeout
        self._dials = 0
        self._rested = -math.inf
        self._unsent: deque[Pending] = deque()
        self._pending: deque[Pending] = deque()
        self._watchers: dict[str, set[Any]] = {}
        self._socket: ObservedSocket | None = None
        self._sending = threading.Lock()

    # --- what the gateway calls: kazoo's own names --------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether requests are sent now."""
        return self.linked

    def create_async(
        self,
        path: str,
        value: bytes = b"",
        acl: Sequence[Any] | None = None,
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        include_data: bool = False,
    ) -> Any:
        """Make a znode; nobody is denied anything here, so the ACL is not looked at."""
        name = "create2" if include_data else "create"
        operation = Create(path=path, data=value, ephemeral=ephemeral, sequential=sequence)
        return self.send(Question(name=name, operations=(operation,)), steps=2)

    def get_async(self, path: str, watch: Any = None) -> Any:
        """Read data and Stat."""
        return self.send(
            Question(name="getData", path=path, watched=watch is not None), watcher=watch
        )

    def exists_async(self, path: str, watch: Any = None) -> Any:
        """Read the Stat; None without a znode."""
        return self.send(
            Question(name="exists", path=path, watched=watch is not None), watcher=watch
        )

    def get_children_async(self, path: str) -> Any:
        """Read the names of the children."""
        return self.send(Question(name="getChildren", path=path))

    def delete_async(self, path: str, version: int = -1) -> Any:
        """Delete a znode."""
        return self.send(Question(name="delete", operations=(Delete(path=path, version=version),)))

    def transaction(self) -> Batch:
        """Begin a multi."""
        return Batch(self)

    def ensure_path_async(self, path: str, acl: Sequence[Any] | None = None) -> Any:
        """Look for a znode, and make it and all above it where missing: many requests."""
        made = Result(self.answers.append)

        def created(result: Any) -> None:
            exists = result.exception is not None and isinstance(
                result.exception, type(reply_error(Code.NODE_EXISTS))
            )
            self._pass_on(result, made, ignored=exists)

        def create(result: Any = None) -> None:
            if result is not None and result.exception is not None:
                self._pass_on(result, made)
            else:
                self.create_async(path, b"", acl=acl).rawlink(created)

        def looked(result: Any) -> None:
            if result.exception is not None or result.value is not None:
                self._pass_on(result, made)
            elif dirname(path) == "/":
                create()
            else:
                self.ensure_path_async(dirname(path), acl=acl).rawlink(create)

        self.exists_async(path).rawlink(looked)
        return made

    def send(self, question: Question, *, steps: int = 1, watcher: Any = None) -> Any:
        """Ask the server, now or as soon as there is one."""
        pending = Pending(question, Result(self.answers.append, steps), watcher)
        if self.state is State.CLOSED:
            pending.result.set(Refusal(Code.CONNECTION_LOSS))
        elif self.state is State.EXPIRED:
            pending.result.set(Refusal(Code.SESSION_EXPIRED))
        else:
            with self._sending:
                self._unsent.append(pending)
            self._flush()
        return pending.result

    # --- its connection ------------------------------------------------------------------------

    @property
    def linked(self) -> bool:
        """Whether it counts itself as connected."""
        return self.state is State.CONNECTED

    @property
    def dialable(self) -> bool:
        """Whether it would dial now, and somebody would take the call."""
        rested = self._clock.boottime() >= self._rested
        return self._waits and rested and self._choose(self) is not None

    @property
    def _waits(self) -> bool:
        return self.state in (State.CONNECTING, State.EXPIRED) and self.connection is None

    def dial(self) -> None:
        """Connect to a server, and hand in the session we have."""
        server = self._choose(self)
        assert server is not None  # it was dialable
        self.state = State.CONNECTING
        self._dials += 1
        self._rested = self._clock.boottime() + _BACK_OFF
        self.dialled = self.sent = self.heard = self._clock.boottime()
        connection = Connection(server=server, faults=self._faults, swallows=set(self.swallows))
        self._socket = ObservedSocket(
            Socket(self),
            number=self._dials,
            started=self._clock.boottime(),
            server=server.address,
            observer=self._observer,
        )
        self.connection, self.former = connection, None
        swapped, self.swapped = self.swapped, False
        server.greet(connection, None if swapped else self.session, self.session_timeout)

    def read(self) -> None:
        """Take in the next thing that the server has sent."""
        assert self.connection is not None  # there is something to read
        self.heard = self._clock.boottime()
        message = self.connection.replies.popleft()
        match message:
            case Handshake(response=response):
                self._shake_hands(response)
            case Reply():
                self._take(message)
            case News(path=path, happened=happened):
                self._observe(wire.WATCH_EVENT_XID, -1)
                self._spread(Event(happened, path), self._watchers.pop(path, set()))

    @property
    def due(self) -> float:
        """When it does something by itself: sends a ping, gives up a connection."""
        if self._waits and self._clock.boottime() < self._rested:
            return self._rested
        if self.connection is None or self.connection.broken:
            return math.inf
        if self.dialled is not None:
            return self.dialled + self.session_timeout
        return min(self.sent + self._granted / 3, self.heard + self._granted * 2 / 3)

    def pass_time(self) -> None:
        """Do what is due: kazoo pings when nothing was sent for a third of the timeout."""
        now, connection = self._clock.boottime(), self.connection
        if connection is None or connection.broken or now < self.due:
            return
        if self.dialled is not None or now >= self.heard + self._granted * 2 / 3:
            connection.broken = True
            return
        self.sent = now
        if REQUESTS in connection.swallows or not connection.server.running:
            return
        connection.server.hear(connection)
        if REPLIES not in connection.swallows:
            self.heard = now

    def shut(self) -> None:
        """End the connection from this side; the reading thread notices later."""
        if self.connection is not None:
            self.connection.broken = True

    def drop(self) -> None:
        """Notice that the connection has ended."""
        assert self.connection is not None  # it has just ended
        self.hang_up()
        if self.state is State.CONNECTED:
            self.state = State.CONNECTING
            self._fail_all(Code.CONNECTION_LOSS)
            self.listen("SUSPENDED")
            watchers = [watcher for heard in self._watchers.values() for watcher in heard]
            self._watchers.clear()
            self._spread(Event(Happened.NONE, None), watchers)

    def hang_up(self) -> None:
        """Give the connection up; nobody is told."""
        connection, self.connection, self.dialled = self.connection, None, None
        assert connection is not None  # somebody hangs it up
        connection.broken = True
        connection.server.forget(connection)
        if not connection.server.isolated:
            connection.requests = deque(asked for asked in connection.requests if asked.writes)
            self.former = connection

    def close(self) -> None:
        """Stop for good."""
        if self.connection is not None:
            self.hang_up()
        self.state = State.CLOSED
        self.listen("LOST")
        self._fail_all(Code.CONNECTION_LOSS)

    # --- within --------------------------------------------------------------------------------

    def _shake_hands(self, response: wire.ConnectResponse) -> None:
        assert self._socket is not None  # it was dialled
        self.dialled = None
        self._socket.welcome = response
        self._observer.welcomed(self._socket, response)
        if response.expired:
            self._expire()
            return
        assert self.connection is not None  # it was just read from
        self.session = response.session_id, response.password
        self._granted = response.timeout
        self.state = State.CONNECTED
        self.listen("CONNECTED")
        self._flush()

    def _expire(self) -> None:
        self.hang_up()
        self.state = State.EXPIRED
        self.listen("LOST")
        self._fail_all(Code.SESSION_EXPIRED)
        self.session, self.last_zxid = None, 0
        watchers = [watcher for heard in self._watchers.values() for watcher in heard]
        self._watchers.clear()
        self._spread(Event(Happened.NONE, None), watchers)

    def _take(self, reply: Reply) -> None:
        with self._sending:
            pending = self._pending.popleft()
        self.last_zxid = max(self.last_zxid, reply.zxid)
        refused = isinstance(reply.answer, Refusal)
        self._observe(self._dials, reply.zxid, reply.answer.code if refused else 0)
        if pending.question.watched and not refused:
            self._watchers.setdefault(pending.question.path, set()).add(pending.watcher)
        pending.result.set(_translated(reply.answer))

    def _observe(self, xid: int, zxid: int, error: int = 0) -> None:
        assert self._socket is not None  # something came through it
        self._observer.replied(self._socket, wire.ReplyHeader(xid=xid, zxid=zxid, error=error))

    def _spread(self, event: Event, watchers: Any) -> None:
        for watcher in watchers:
            self.events.append(partial(watcher, event))

    def _flush(self) -> None:
        with self._sending:
            while self.linked and self._unsent and self.connection is not None:
                pending = self._unsent.popleft()
                self._pending.append(pending)
                self.sent = self._clock.boottime()
                self.connection.ask(pending.question)

    def _fail_all(self, code: Code) -> None:
        with self._sending:
            lost = [*self._pending, *self._unsent]
            self._pending.clear()
            self._unsent.clear()
        for pending in lost:
            pending.result.set(Refusal(code))

    def _pass_on(self, result: Any, to: Result, *, ignored: bool = False) -> None:
        to.exception = None if ignored else result.exception
        to.set(True)


def _translated(answer: Any) -> Any:
    """Items of a multi are exceptions in kazoo's list."""
    if not isinstance(answer, list) or not any(isinstance(item, Refusal) for item in answer):
        return answer
    return [reply_error(item.code) if isinstance(item, Refusal) else item for item in answer]
