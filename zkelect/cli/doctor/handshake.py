"""A session opened by hand with one server, and closed at once: what it grants, how quickly.

To open a session takes a commit of the quorum, so a server that opens one serves.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import attrs

from zkelect.session import wire
from zkelect.session.clock import SystemClock

__all__ = ["Greeting", "NotServing", "dial", "greet"]

_CLOSE_XID: Final = 1
_CHUNK: Final = 4096
_now: Final = SystemClock().boottime


class NotServing(OSError):
    """It took the connection and opened no session."""


@attrs.frozen(kw_only=True)
class Greeting:
    """How a server has answered.

    :ivar connect: seconds until the connection was there. :ivar handshake: seconds from then
        until the session was. :ivar granted: its timeout, seconds.
    """

    connect: float
    handshake: float
    granted: float


def dial(address: tuple[str, int], tls: ssl.SSLContext | None, timeout: float) -> socket.socket:
    """Return a connection with a server, by TLS when there is a context for it.

    :param timeout: seconds to wait, here and whenever the connection is read.
    :raises OSError: there is none.
    """
    plain = socket.create_connection(address, timeout)
    if tls is None:
        return plain
    try:
        return tls.wrap_socket(plain, server_hostname=address[0])
    except BaseException:
        plain.close()
        raise


def greet(
    address: tuple[str, int], asked: float, tls: ssl.SSLContext | None, timeout: float
) -> Greeting:
    """Open a session, see what is granted, and close it.

    :param asked: session timeout to ask for, seconds. :param timeout: seconds to wait each time.
    :raises NotServing: it does not open one. :raises OSError: there is no connection.
    """
    began = _now()
    with dial(address, tls, timeout) as connection:
        connected = _now()
        try:
            granted = _open(connection, asked)
        except (OSError, wire.MalformedFrame) as error:
            raise NotServing(str(error)) from error
        return Greeting(connect=connected - began, handshake=_now() - connected, granted=granted)


def _open(connection: socket.socket, asked: float) -> float:
    """Return the timeout granted; both requests leave together, so nothing stays behind."""
    close = wire.encode_close_request(_CLOSE_XID)
    connection.sendall(wire.encode_connect_request(timeout=asked) + close)
    return wire.decode_connect_response(next(_frames(connection))).timeout


def _frames(connection: socket.socket) -> Iterator[bytes]:
    reader = wire.FrameReader()
    while data := connection.recv(_CHUNK):
        yield from reader.feed(data)
    raise ConnectionResetError("it closes the connection without an answer: no quorum?")
