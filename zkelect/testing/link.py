"""One connection through a relay: a client's socket, a server's socket, a flow each way.

Sockets do not block here and nothing waits: the relay's loop asks for the events wanted
and hands them in. What passes is decided by a :class:`~zkelect.testing.tap.Tap`.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Final

from zkelect.testing.conversation import REPLIES, REQUESTS, Direction
from zkelect.testing.tap import Act, End, Hang, Hold, Send

if TYPE_CHECKING:
    from zkelect.testing.tap import Tap

__all__ = ["Link"]

_CHUNK: Final = 65536
_MOST_PENDING: Final = 4 * _CHUNK
_MOST_QUEUED: Final = 10_000
_RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close() sends RST


class _Flow:
    """One direction: what was read from the source and not yet written to the sink.

    :ivar queue: what may not be written yet. :ivar ended: the source will send no more.
    :ivar mute: the sink must not hear of that. :ivar sunk: the sink is gone.
    """

    def __init__(self, direction: Direction, source: socket.socket, sink: socket.socket) -> None:
        self.direction: Direction = direction
        self.source, self.sink = source, sink
        self.pending = bytearray()
        self.queue = deque[Act]()
        self.ended = self.mute = self.sunk = False

    @property
    def reads(self) -> bool:
        room = len(self.pending) < _MOST_PENDING and len(self.queue) < _MOST_QUEUED
        return not self.ended and room

    @property
    def finished(self) -> bool:
        return self.ended and not (self.pending or self.queue)

    def write(self) -> None:
        sent = self.sink.send(self.pending)
        del self.pending[:sent]

    def sink_is_gone(self) -> None:
        self.sunk = True
        self.pending.clear()
        self.queue.clear()


class Link:
    """A client's connection and the one made to the server for it.

    :ivar closed: both sockets are closed; the loop can forget them.
    """

    def __init__(self, client: socket.socket, server_address: tuple[str, int], tap: Tap) -> None:
        """Begin to connect to the server, if the tap lets it hear of this.

        :param tap: decides what passes.
        """
        self.tap = tap
        self._client, self._server = client, socket.socket(_family(server_address))
        self._requests = _Flow(REQUESTS, client, self._server)
        self._replies = _Flow(REPLIES, self._server, client)
        self._connecting = tap.begin()
        self._ending = False
        self.closed = False
        for end in self.ends:
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._connecting:
            self._server.connect_ex(server_address)
        else:
            self._replies.ended = self._replies.mute = True
            self._requests.mute = self._requests.sunk = True

    @property
    def ends(self) -> tuple[socket.socket, socket.socket]:
        """The two sockets."""
        return self._client, self._server

    def wants(self, end: socket.socket) -> int:
        """Return the selector events to wait for on one of the ends; 0 for none."""
        if self.closed:
            return 0
        if end is self._server and self._connecting:
            return EVENT_WRITE
        read = EVENT_READ if self._flow_from(end).reads and not self._ending else 0
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

    def resume(self) -> None:
        """Go on with what waits behind a gate that is open now."""
        for flow in (self._requests, self._replies):
            self._release(flow)
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
        if not data:
            flow.ended = True
            flow.mute |= not self.tap.admits(flow.direction)
            return
        for act in self.tap.take(flow.direction, data):
            self._flow(act.direction).queue.append(act)
        for each in (self._requests, self._replies):
            self._release(each)

    def _release(self, flow: _Flow) -> None:
        while flow.queue and not self._ending:
            match flow.queue[0]:
                case Hold(gate=gate) if not gate.open:
                    return
                case Send(data=data) if not flow.sunk:
                    flow.pending += data
                case End():
                    self._ending = True
                case Hang():
                    self._hang()
                    return
            flow.queue.popleft()

    def _hang(self) -> None:
        self.tap.sever()
        self._requests.queue.clear()
        self._replies.queue.clear()

    def _lose(self, end: socket.socket) -> None:
        """One side was reset. The other hears of it, unless that is cut."""
        outward, inward = self._flow_from(end), self._flow_to(end)
        if self.tap.admits(outward.direction):
            self.reset()
            return
        outward.ended = outward.mute = inward.mute = True
        inward.sink_is_gone()

    def _settle(self) -> None:
        """Pass the end of a flow on; close when both have ended."""
        if self.closed:
            return
        flows = (self._requests, self._replies)
        for flow in flows:
            if flow.finished and not flow.mute:
                with contextlib.suppress(OSError):  # told already, or gone
                    flow.sink.shutdown(socket.SHUT_WR)
        ending = self._ending and not any(flow.pending for flow in flows)
        if ending or all(flow.finished for flow in flows):
            for end in self.ends:
                end.close()
            self.closed = True

    def _flow(self, direction: Direction) -> _Flow:
        return self._requests if direction == REQUESTS else self._replies

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
