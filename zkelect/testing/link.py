"""One forwarded connection: a client's socket, a server's socket, and a flow each way.

Sockets do not block here and nothing waits: the forwarder's loop asks for the events
wanted and hands them in.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Final

from zkelect.testing.conversation import REPLIES, REQUESTS, Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Container

__all__ = ["Link"]

_CHUNK: Final = 65536
_MOST_PENDING: Final = 4 * _CHUNK
_RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close() sends RST


class _Flow:
    """One direction: what was read from the source and not yet written to the sink."""

    def __init__(self, direction: Direction, source: socket.socket, sink: socket.socket) -> None:
        self.direction: Direction = direction
        self.source, self.sink = source, sink
        self.pending = bytearray()
        self.ended = False  # the source will send no more
        self.broken = False  # a cut swallowed something: nothing after it may pass

    @property
    def reads(self) -> bool:
        return not self.ended and len(self.pending) < _MOST_PENDING

    @property
    def finished(self) -> bool:
        return self.ended and not self.pending

    def write(self) -> None:
        sent = self.sink.send(self.pending)
        del self.pending[:sent]


class Link:
    """A client's connection and the one made to the server for it.

    :ivar closed: both sockets are closed; the loop can forget them.
    """

    def __init__(
        self,
        client: socket.socket,
        server_address: tuple[str, int],
        cut: Container[Direction],
        heard: Callable[[Direction, bytes, bool], None],
    ) -> None:
        """Begin to connect to the server, unless requests are cut: then it hears of nothing.

        :param cut: the directions that swallow; looked at again with every event.
        :param heard: is given direction, bytes, and whether they pass.
        """
        self._cut, self._heard = cut, heard
        self._client, self._server = client, socket.socket(_family(server_address))
        self._requests = _Flow(REQUESTS, client, self._server)
        self._replies = _Flow(REPLIES, self._server, client)
        self._connecting = REQUESTS not in cut
        self._requests.broken = self._replies.broken = self._replies.ended = REQUESTS in cut
        self.closed = False
        for end in self.ends:
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._connecting:
            self._server.connect_ex(server_address)

    @property
    def ends(self) -> tuple[socket.socket, socket.socket]:
        """The two sockets."""
        return self._client, self._server

    @property
    def broken(self) -> bool:
        """A cut has swallowed something of it, so it can never go on."""
        return self._requests.broken or self._replies.broken

    def wants(self, end: socket.socket) -> int:
        """Return the selector events to wait for on one of the ends; 0 for none."""
        if self.closed:
            return 0
        if end is self._server and self._connecting:
            return EVENT_WRITE
        read = EVENT_READ if self._flow_from(end).reads else 0
        return read | (EVENT_WRITE if self._flow_to(end).pending else 0)

    def handle(self, end: socket.socket, events: int) -> None:
        """Do what the events on one of the ends allow."""
        if self.closed:  # by the event before this one
            return
        try:
            self._advance(end, events)
        except BlockingIOError:
            return
        except OSError:
            self._lose(end)
        self._settle()

    def reset(self) -> None:
        """End both connections with RST, at once."""
        for end in self.ends:
            _reset(end)
        self.closed = True

    def _advance(self, end: socket.socket, events: int) -> None:
        if end is self._server and self._connecting:
            self._connecting = False
            if error := end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(error, "connect failed")
            return
        if events & EVENT_WRITE:
            self._flow_to(end).write()
        if events & EVENT_READ:
            self._read(self._flow_from(end))

    def _read(self, flow: _Flow) -> None:
        data = flow.source.recv(_CHUNK)
        flow.broken |= flow.direction in self._cut
        if not data:
            flow.ended = True
            return
        self._heard(flow.direction, data, not flow.broken)
        if not flow.broken:
            flow.pending += data

    def _lose(self, end: socket.socket) -> None:
        """One side was reset. The other hears of it, unless that is cut."""
        outward, inward = self._flow_from(end), self._flow_to(end)
        if not (outward.broken or outward.direction in self._cut):
            self.reset()
            return
        outward.ended = outward.broken = inward.broken = True
        outward.pending.clear()
        inward.pending.clear()

    def _settle(self) -> None:
        """Pass the end of a flow on; close when both have ended."""
        if self.closed:
            return
        for flow in (self._requests, self._replies):
            if flow.finished and not flow.broken:
                with contextlib.suppress(OSError):  # told already, or gone
                    flow.sink.shutdown(socket.SHUT_WR)
        if self._requests.finished and self._replies.finished:
            for end in self.ends:
                end.close()
            self.closed = True

    def _flow_from(self, end: socket.socket) -> _Flow:
        return self._requests if end is self._client else self._replies

    def _flow_to(self, end: socket.socket) -> _Flow:
        return self._replies if end is self._client else self._requests


def _family(address: tuple[str, int]) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the peer may have closed it
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
    end.close()
