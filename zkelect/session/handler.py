"""A kazoo handler whose sockets are observed.

kazoo hides the negotiated session timeout and the time of each answer, but it takes a
handler, and a handler makes the sockets. Reading the frames as they pass gives all of
it by public API alone, and shutting the socket makes kazoo drop a dead link at once:
left to itself it counts every request it sends as a sign of life and stays
"CONNECTED" for 20 s and more (measured on 2.11).
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import math
import select
import socket
import ssl
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol

from kazoo.handlers.threading import SequentialThreadingHandler

from zkelect.errors import TlsFailed, ZkelectError
from zkelect.session import wire
from zkelect.session.clock import Clock
from zkelect.session.doorbell import Doorbell
from zkelect.session.hosts import server_name

__all__ = ["NOT_SERVING", "ObservedHandler", "ObservedSocket", "Observer"]

_LEAST_DIAL_TIMEOUT: Final = 1.0
NOT_SERVING: Final = "closed the connection instead of answering; it may have no quorum"
_SILENT: Final = "took the connection and did not answer"


class Observer(Protocol):
    """Who is told what passes; called on kazoo's own thread, so it must not wait."""

    def welcomed(self, connection: ObservedSocket, response: wire.ConnectResponse) -> None:
        """A server answered the handshake."""

    def replied(self, connection: ObservedSocket, header: wire.ReplyHeader) -> None:
        """A server answered a request, a ping, or sent an event."""

    def unwelcome(self, server: str, cause: Exception) -> None:
        """A server could not be reached, or what it said is no ZooKeeper."""


class ObservedSocket:
    """A connected socket that tells its observer which frames arrive.

    :ivar number: counts the connections of one handler, from 1.
    :ivar started: boot-clock instant read before the TCP connect.
    :ivar server: host and port as text.
    :ivar welcome: the connect response, None until it came.
    """

    def __init__(
        self, inner: Any, *, number: int, started: float, server: str, observer: Observer
    ) -> None:
        self._inner = inner
        self._secure = isinstance(inner, ssl.SSLSocket)
        self._observer = observer
        self._reader: wire.FrameReader | None = None
        self.number = number
        self.started = started
        self.server = server
        self.welcome: wire.ConnectResponse | None = None
        self.was_shut: bool = False
        self.blamed: bool = False

    def __getattr__(self, name: str) -> Any:
        """Everything else is the socket's own."""
        return getattr(self._inner, name)

    def fileno(self) -> int:
        """Return the descriptor to wait for; kazoo asks several times for each request."""
        return int(self._inner.fileno())

    def pending(self) -> int:
        """Return how much was read and not fetched yet; only a TLS socket keeps some."""
        return self._inner.pending() if self._secure else 0

    def send(self, data: Any) -> int:
        """Send, and start to read frames unless this is a four-letter word."""
        if self._reader is None and not wire.is_four_letter_word(bytes(data[:4])):
            self._reader = wire.FrameReader()
        return int(self._inner.send(data))

    def recv(self, size: int) -> bytes:
        """Receive, and tell the observer of each frame that is complete now."""
        data = self._receive(size)
        if self._reader is None:
            return data
        try:
            for frame in self._reader.feed(data):
                self._observe(frame)
        except wire.MalformedFrame as error:
            self.blame(error)
            raise ConnectionAbortedError(str(error)) from error
        return data

    def _receive(self, size: int) -> bytes:
        try:
            data: bytes = self._inner.recv(size)
        except ssl.SSLError:
            raise  # most often only "try again"
        except OSError as error:
            self.blame(error)
            raise
        if not data:
            self.blame(ConnectionResetError(errno.ECONNRESET, NOT_SERVING))
        return data

    def blame(self, cause: Exception) -> None:
        """Tell why this server did not answer the handshake, once, and not for our own acts."""
        if self.welcome is None and not self.was_shut and not self.blamed:
            self.blamed = True
            self._observer.unwelcome(self.server, cause)

    def shut(self) -> None:
        """Make both sides see the end of this connection; kazoo then tries another one."""
        self.was_shut = True
        with contextlib.suppress(OSError):  # it was closed in the meantime
            self._inner.shutdown(socket.SHUT_RDWR)

    def _observe(self, frame: bytes) -> None:
        if self.welcome is None:
            self.welcome = wire.decode_connect_response(frame)
            self._observer.welcomed(self, self.welcome)
        else:
            self._observer.replied(self, wire.decode_reply_header(frame))


class ObservedHandler(SequentialThreadingHandler):
    """kazoo's threading handler, with observed sockets.

    :param patience: seconds after which a silent dial is given up, so that one black
        hole does not use up the session; at least one second is given.
    :param tls: how to make links secure, None to leave them plain.
    """

    def __init__(
        self, *, clock: Clock, observer: Observer, patience: float, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__()
        self._tls = tls
        self._clock = clock
        self._observer = observer
        self._dial_timeout = max(patience, _LEAST_DIAL_TIMEOUT)
        self._dialled = 0
        self._forbidden = False
        self.current: ObservedSocket | None = None

    def create_connection(
        self,
        address: tuple[str, int],
        hostname: str | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> ObservedSocket:
        """Connect as kazoo asks, and observe what passes; TLS is our own affair."""
        host = address[0] if hostname is None else hostname
        server = server_name(host, address[1])
        if self._forbidden:
            raise ConnectionRefusedError("the session is being left to expire")
        self.blame_silent()
        limit = self._dial_timeout if timeout is None else min(timeout, self._dial_timeout)
        started = self._clock.boottime()
        try:
            inner = self._secured(super().create_connection(address, timeout=limit), host)
        except OSError as error:
            self._observer.unwelcome(server, _explained(server, error))
            raise
        self._dialled += 1
        self.current = ObservedSocket(
            inner, number=self._dialled, started=started, server=server, observer=self._observer
        )
        if self._forbidden:  # meanwhile
            self.current.shut()
        return self.current

    def create_socket_pair(self) -> tuple[Doorbell, Doorbell]:
        """Return what kazoo wakes its thread by: the end that is read, the end that is written."""
        bell = Doorbell()
        return bell, bell

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        others: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Wait as select.select does, for descriptors of any number.

        kazoo waits three times for each request, and its own way, a new epoll each time, takes
        two thirds of its thread's time (measured on 2.11, thousands of requests under way).
        """
        if sys.platform == "win32" or others:
            waited: tuple[list[Any], list[Any], list[Any]]
            waited = super().select(readers, writers, others, timeout)
            return waited
        poll = select.poll()
        for each in {*readers, *writers}:
            wanted = select.POLLIN * (each in readers) | select.POLLOUT * (each in writers)
            poll.register(each, wanted)
        ready = dict(poll.poll(None if timeout is None else _ms(timeout)))

        def those(sockets: Sequence[Any], other: int) -> list[Any]:
            """An error is told to both, as select.select does."""
            return [each for each in sockets if ready.get(each.fileno(), 0) & ~other]

        return those(readers, select.POLLOUT), those(writers, select.POLLIN), []

    def _secured(self, plain: socket.socket, host: str) -> socket.socket:
        """Shake hands within the same limit of time; a refused socket is closed."""
        if self._tls is None:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise

    def shut(self) -> None:
        """Drop the present connection, if there is one; the session itself goes on."""
        if self.current is not None:
            self.current.shut()

    @property
    def shutting(self) -> bool:
        """Whether the present connection was dropped by us, and no other one is there yet."""
        return self.current is not None and self.current.was_shut

    def overdue(self, now: float) -> bool:
        """Whether a dialled server has kept silent for too long."""
        dialled = self.current
        if dialled is None or dialled.welcome is not None or dialled.was_shut:
            return False
        if now - dialled.started <= 2 * self._dial_timeout:
            return False
        self.blame_silent()
        return True

    def blame_silent(self) -> None:
        """Tell of the server that took the last connection and has not answered, if so."""
        if self.current is not None:
            self.current.blame(TimeoutError(errno.ETIMEDOUT, _SILENT))

    def forbid(self) -> None:
        """Connect no more: the session is left to expire by itself."""
        self._forbidden = True
        self.shut()

    def abandon(self) -> None:
        """In a forked child: kazoo's threads are the parent's, so do not wait for them."""
        atexit.unregister(self.stop)


def _ms(seconds: float) -> int:
    """Rounded up: a wait that ends too early would spin."""
    return math.ceil(seconds * 1000)


def _explained(server: str, error: OSError) -> ZkelectError | OSError:
    """kazoo shows a refused certificate only as a timeout: keep what really happened."""
    if not isinstance(error, ssl.SSLError):
        return error
    reason = getattr(error, "verify_message", None) or error.reason or str(error)
    translated = TlsFailed(server, str(reason))
    translated.__cause__ = error
    return translated
