"""A TCP forwarder in front of one server, that can cut, drop and refuse, and counts."""

from __future__ import annotations

import collections
import contextlib
import selectors
import socket
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import attrs

from zkelect.errors import InvalidArgument, Misuse
from zkelect.session import hosts
from zkelect.session.clock import SystemClock
from zkelect.testing.conversation import REPLIES, REQUESTS, Conversation, Direction
from zkelect.testing.link import Link
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Forwarder", "Frame"]

_LOG_LENGTH: Final = 100_000
_OBEY_WITHIN: Final = 10.0


@attrs.frozen(kw_only=True)
class Frame:
    """One ZooKeeper frame that came to a :class:`Forwarder`.

    :ivar direction: ``requests`` or ``replies``.
    :ivar name: ZooKeeper's name of the request, also on its reply; ``connect``; ``event``.
    :ivar xid: number of the request; None for ``connect`` and four-letter words.
    :ivar at: when its last byte came, on the boot clock, in seconds.
    :ivar passed: False when a cut swallowed it.
    """

    direction: Direction
    name: str
    xid: int | None
    at: float
    passed: bool


class Forwarder:
    """Stands between clients and one ZooKeeper server, and misbehaves on request.

    ::

        with Forwarder(zookeeper.servers[0].address) as forwarder:
            client = KazooClient(forwarder.hosts)
            ...
            forwarder.cut()

    Every method returns when it has taken effect. Works for TLS too, but names no frames
    then. One daemon thread, on the loopback interface only.
    """

    def __init__(self, address: str) -> None:
        """Listen on a free port and forward to ``address``.

        :param address: ``host:port`` of one server. It need not run yet: while it does not,
            connections are accepted and reset.
        :raises InvalidArgument: not one server.
        """
        self._server = _one_server(address)
        self._port = Port()
        self._cut: set[Direction] = set()
        self._links: set[Link] = set()
        self._watched: dict[socket.socket, int] = {}
        self._commands = collections.deque[tuple["Callable[[], None]", Future[None]]]()
        self._changed = threading.Condition()
        self._counts: dict[Direction, collections.Counter[str]] = {
            REQUESTS: collections.Counter(),
            REPLIES: collections.Counter(),
        }
        self._log = collections.deque[Frame](maxlen=_LOG_LENGTH)
        self._boottime = SystemClock().boottime
        self._selector = selectors.DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._selector.register(self._ear, selectors.EVENT_READ, self._obey)
        self._listener: socket.socket | None = None
        self._listen()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"forwarder-{address}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        cut = f" cut: {', '.join(sorted(self._cut))}" if self._cut else ""
        return f"<Forwarder {self.hosts} to {self._server[0]}:{self._server[1]}{cut}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- looking --------------------------------------------------------------------------

    @property
    def hosts(self) -> str:
        """The connection string for clients: ``127.0.0.1:port``."""
        return self._port.address

    @property
    def requests(self) -> collections.Counter[str]:
        """How many requests have passed, by name; what a cut swallowed is not counted."""
        with self._changed:
            return self._counts[REQUESTS].copy()

    @property
    def replies(self) -> collections.Counter[str]:
        """How many replies and watch events have passed, by the name of their request."""
        with self._changed:
            return self._counts[REPLIES].copy()

    @property
    def log(self) -> tuple[Frame, ...]:
        """The last 100,000 frames, swallowed ones too, oldest first."""
        with self._changed:
            return tuple(self._log)

    def wait_for(self, condition: Callable[[], bool], *, timeout: float = 10.0) -> bool:
        """Wait until a condition holds, asking again after each frame.

        :param condition: such as ``lambda: forwarder.requests["multi"] >= 3``.
        :param timeout: seconds, above 0.
        :returns: whether it holds.
        """
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    # --- doing ----------------------------------------------------------------------------

    def cut(self, direction: Direction | None = None) -> None:
        """Make a black hole: TCP stays open, new connections too, but no byte gets through.

        Neither side hears that the other closes or dies. With requests cut, no connection
        is made to the server for a new client.

        :param direction: ``requests`` or ``replies``; None: both.
        """
        chosen = (REQUESTS, REPLIES) if direction is None else (direction,)
        self._do(lambda: self._cut.update(chosen))

    def heal(self) -> None:
        """End every cut. Connections that lost something to one are reset; others go on."""
        self._do(self._heal)

    def drop(self) -> None:
        """Reset all connections (RST, both sides). New ones are accepted."""
        self._do(self._drop)

    def refuse(self) -> None:
        """Refuse new connections; those that exist go on."""
        self._do(self._stop_listening)

    def accept(self) -> None:
        """Accept new connections again, on the same port."""
        self._do(self._listen)

    def close(self) -> None:
        """Reset all connections, give the port back, end the thread; no-op the second time."""
        if not self._closed:
            self._do(self._end)
            self._thread.join(_OBEY_WITHIN)

    # --- within, all on the forwarder's thread --------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            for key, events in self._selector.select():
                act: Callable[[int], None] = key.data
                act(events)

    def _do(self, action: Callable[[], None]) -> None:
        """Hand an action to the thread and wait until it is done: the callers' half."""
        if self._closed:
            raise Misuse(f"the forwarder at {self.hosts} is closed")
        done = Future[None]()
        self._commands.append((action, done))
        self._bell.send(b"\0")
        done.result(_OBEY_WITHIN)

    def _obey(self, _: int) -> None:
        self._ear.recv(4096)
        while self._commands:
            action, done = self._commands.popleft()
            try:
                done.set_result(action())
            except OSError as error:
                done.set_exception(error)

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = self._port.listen()
            self._listener.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ, self._welcome)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _welcome(self, _: int) -> None:
        if self._listener is None:
            return
        with contextlib.suppress(OSError):  # the client has given up already
            client, _address = self._listener.accept()
            link = Link(client, self._server, self._cut, partial(self._heard, Conversation()))
            self._links.add(link)
            self._watch(link)

    def _serve(self, link: Link, end: socket.socket, events: int) -> None:
        link.handle(end, events)
        self._watch(link)

    def _watch(self, link: Link) -> None:
        """Tell the selector what the link now waits for; forget it once it is closed."""
        for end in link.ends:
            watched, wanted = self._watched.pop(end, 0), link.wants(end)
            if watched and watched != wanted:
                self._selector.unregister(end)
            if wanted and watched != wanted:
                self._selector.register(end, wanted, partial(self._serve, link, end))
            if wanted:
                self._watched[end] = wanted
        if link.closed:
            self._links.discard(link)

    def _heard(
        self, conversation: Conversation, direction: Direction, data: bytes, passed: bool
    ) -> None:
        at = self._boottime()
        with self._changed:
            for name, xid in conversation.hear(direction, data):
                self._log.append(
                    Frame(direction=direction, name=name, xid=xid, at=at, passed=passed)
                )
                self._counts[direction][name] += passed
            self._changed.notify_all()

    def _heal(self) -> None:
        self._cut.clear()
        self._reset(link for link in self._links if link.broken)

    def _drop(self) -> None:
        self._reset(self._links)

    def _reset(self, links: Iterable[Link]) -> None:
        for link in tuple(links):
            link.reset()
            self._watch(link)

    def _end(self) -> None:
        self._closed = True
        self._stop_listening()
        self._drop()
        self._selector.close()
        self._ear.close()
        self._bell.close()
        self._port.release()


def _one_server(address: str) -> tuple[str, int]:
    parsed = hosts.parse(address)
    if len(parsed.servers) != 1 or parsed.chroot:
        raise InvalidArgument("address", address, "one server, as host:port")
    return parsed.servers[0]
