"""What stands between clients and servers: one thread, a port for each server, counts."""

from __future__ import annotations

import collections
import contextlib
import selectors
import socket
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from zkelect.errors import Misuse
from zkelect.session.hosts import server_name
from zkelect.testing.conversation import REPLIES, REQUESTS, Direction
from zkelect.testing.link import Link
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from zkelect.testing.journal import Frame, Journal
    from zkelect.testing.tap import Tap

__all__ = ["Relay"]

_OBEY_WITHIN: Final = 10.0


class Relay:
    """Listens on a port for each server, passes on what comes, counts and notes it.

    Every method returns when it has taken effect. One daemon thread, on the loopback
    interface only.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        journal: Journal,
        make_tap: Callable[[Set[Direction]], Tap],
    ) -> None:
        """Listen on free ports and forward each to one of the servers.

        They need not run yet: while one does not, connections are accepted and reset.

        :param make_tap: makes what decides about a new connection; it is given the
            directions that are cut, to look at again and again.
        """
        self._journal = journal
        self._make_tap = make_tap
        self._servers = tuple(servers)
        self._ports = tuple(Port() for _ in self._servers)
        self._cut: set[Direction] = set()
        self._links: set[Link] = set()
        self._watched: dict[socket.socket, int] = {}
        self._commands = collections.deque[tuple["Callable[[], None]", Future[None]]]()
        self._selector = selectors.DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._selector.register(self._ear, selectors.EVENT_READ, self._obey)
        self._listeners: list[socket.socket] = []
        self._listen()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"relay {self.hosts}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        servers = ",".join(server_name(*server) for server in self._servers)
        cut = f" cut: {', '.join(sorted(self._cut))}" if self._cut else ""
        return f"<{type(self).__name__} {self.hosts} to {servers}{cut}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- looking --------------------------------------------------------------------------

    @property
    def hosts(self) -> str:
        """The connection string for clients: ``127.0.0.1:port``, one for each server."""
        return ",".join(port.address for port in self._ports)

    @property
    def requests(self) -> collections.Counter[str]:
        """How many requests have passed, by name; what was swallowed is not counted."""
        return self._journal.passed(REQUESTS)

    @property
    def replies(self) -> collections.Counter[str]:
        """How many replies and watch events have passed, by the name of their request."""
        return self._journal.passed(REPLIES)

    @property
    def log(self) -> tuple[Frame, ...]:
        """The last 100,000 frames, swallowed ones too, oldest first."""
        return self._journal.frames

    def wait_for(self, condition: Callable[[], bool], *, timeout: float = 10.0) -> bool:
        """Wait until a condition holds, asking again after each frame.

        :param condition: such as ``lambda: forwarder.requests["multi"] >= 3``.
        :param timeout: seconds, above 0.
        :returns: whether it holds.
        """
        return self._journal.wait_for(condition, timeout)

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

    def resume(self) -> None:
        """Look again at what is held back: a gate has been opened."""
        self._do(self._resume)

    def close(self) -> None:
        """Reset all connections, give the ports back, end the thread; no-op the second time."""
        if not self._closed:
            self._do(self._end)
            self._thread.join(_OBEY_WITHIN)

    # --- within, all on the relay's thread ------------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            for key, events in self._selector.select():
                act: Callable[[int], None] = key.data
                act(events)

    def _do(self, action: Callable[[], None]) -> None:
        """Hand an action to the thread and wait until it is done: the callers' half."""
        if self._closed:
            raise Misuse(f"the {type(self).__name__} at {self.hosts} is closed")
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
        if self._listeners:
            return
        for port, server in zip(self._ports, self._servers, strict=True):
            listener = port.listen()
            listener.setblocking(False)
            welcome = partial(self._welcome, listener, server)
            self._selector.register(listener, selectors.EVENT_READ, welcome)
            self._listeners.append(listener)

    def _stop_listening(self) -> None:
        while self._listeners:
            listener = self._listeners.pop()
            self._selector.unregister(listener)
            listener.close()

    def _welcome(self, listener: socket.socket, server: tuple[str, int], _: int) -> None:
        if listener not in self._listeners:
            return
        with contextlib.suppress(OSError):  # the client has given up already
            client, _address = listener.accept()
            link = Link(client, server, self._make_tap(self._cut))
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

    def _heal(self) -> None:
        self._cut.clear()
        self._reset(link for link in self._links if link.tap.broken)

    def _drop(self) -> None:
        self._reset(self._links)

    def _reset(self, links: Iterable[Link]) -> None:
        for link in tuple(links):
            link.reset()
            self._watch(link)

    def _resume(self) -> None:
        for link in tuple(self._links):
            link.resume()
            self._watch(link)

    def _end(self) -> None:
        self._closed = True
        self._stop_listening()
        self._drop()
        self._selector.close()
        self._ear.close()
        self._bell.close()
        for port in self._ports:
            port.release()
