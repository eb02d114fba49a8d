"""Servers that are no good: each keeps to a script, and counts who came."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from zkelect.session import wire
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ScriptedServer", "close_at_once", "keep_silent", "serve_3_4", "speak_http"]

_UNIMPLEMENTED: Final = -6
_NO_NODE: Final = -101
_GRANTED_MS: Final = 2000


class ScriptedServer:
    """Listens on the loopback interface and lets ``script`` handle each connection.

    :ivar callers: how many connections were accepted.
    :ivar requests: names of the requests a script has understood.
    """

    def __init__(self, script: Callable[[ScriptedServer, socket.socket], None]) -> None:
        self.callers = 0
        self.requests: list[str] = []
        self._script = script
        self._port = Port()
        self._listener = self._port.listen()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        return self._port.address

    @property
    def port(self) -> int:
        return self._port.number

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._listener, *self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join()
        self._port.release()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                connection = self._listener.accept()[0]
                self.callers += 1
                self._open.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):  # the caller has gone
            self._script(self, connection)
        connection.close()


def close_at_once(_: ScriptedServer, connection: socket.socket) -> None:
    """As a server without a quorum does."""
    connection.recv(4096)


def keep_silent(_: ScriptedServer, connection: socket.socket) -> None:
    """A black hole: takes everything, says nothing."""
    while connection.recv(4096):
        pass


def speak_http(_: ScriptedServer, connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def serve_3_4(server: ScriptedServer, connection: socket.socket) -> None:
    """ZooKeeper 3.4, as far as a client sees it before it gives up: it has no Create2."""
    reader = wire.FrameReader()
    greeted = False
    while data := connection.recv(4096):
        for frame in reader.feed(data):
            if greeted:
                _answer(server, connection, wire.decode_request_header(frame))
            else:
                _welcome(connection)
                greeted = True


def _welcome(connection: socket.socket) -> None:
    password = bytes(range(16))
    _send(connection, struct.pack("!iiqi", 0, _GRANTED_MS, 0x1234, len(password)) + password)


def _answer(server: ScriptedServer, connection: socket.socket, request: wire.RequestHeader) -> None:
    name = wire.opcode_name(request.opcode)
    if name == "ping":
        _send(connection, struct.pack("!iqi", wire.PING_XID, 0, 0))
        return
    server.requests.append(name)
    if name == "closeSession":
        _send(connection, struct.pack("!iqi", request.xid, 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    else:
        error = _UNIMPLEMENTED if name == "create2" else _NO_NODE
        _send(connection, struct.pack("!iqi", request.xid, 1, error))


def _send(connection: socket.socket, body: bytes) -> None:
    connection.sendall(struct.pack("!i", len(body)) + body)
