"""ZooKeeper's frames, as far as an onlooker needs them: bytes in, values out.

A connection carries frames: four bytes of length, big-endian, then that many bytes in
the encoding ZooKeeper calls jute. The first frame each way is the connect request and
its response and has no header; every later one begins with a header (ZooKeeper's
``zookeeper.jute``: ConnectRequest, ConnectResponse, RequestHeader, ReplyHeader).
A client may instead send one four-letter word, without any length.

Nothing here reads a socket, a clock or a log: whoever owns the socket feeds the bytes.
"""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AUTH_XID",
    "MAX_FRAME",
    "OPCODES",
    "PING_XID",
    "SESSION_EXPIRED",
    "SESSION_MOVED",
    "WATCH_EVENT_XID",
    "ConnectResponse",
    "FrameReader",
    "MalformedFrame",
    "ReplyHeader",
    "RequestHeader",
    "decode_connect_response",
    "decode_reply_header",
    "decode_request_header",
    "encode_close_request",
    "encode_connect_request",
    "is_four_letter_word",
    "opcode_name",
]

WATCH_EVENT_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4

SESSION_EXPIRED: Final = -112
SESSION_MOVED: Final = -118
"""Errors that say the session is not here: nothing asked on this connection is answered."""

MAX_FRAME: Final = 1 << 27
"""128 MiB: above every reply a server builds, below every length that is really text or TLS
(four printable characters, read as a length, make at least 512 MiB; a TLS record 320 MiB)."""

OPCODES: Final[Mapping[int, str]] = MappingProxyType(
    {
        -11: "closeSession",
        -10: "createSession",
        1: "create",
        2: "delete",
        3: "exists",
        4: "getData",
        5: "setData",
        6: "getACL",
        7: "setACL",
        8: "getChildren",
        9: "sync",
        11: "ping",
        12: "getChildren2",
        13: "check",
        14: "multi",
        15: "create2",
        16: "reconfig",
        17: "checkWatches",
        18: "removeWatches",
        19: "createContainer",
        20: "deleteContainer",
        21: "createTTL",
        22: "multiRead",
        100: "auth",
        101: "setWatches",
        102: "sasl",
        103: "getEphemerals",
        104: "getAllChildrenNumber",
        105: "setWatches2",
        106: "addWatch",
        107: "whoAmI",
    }
)
"""ZooKeeper's own names of its requests (``org.apache.zookeeper.ZooDefs.OpCode``)."""

_LENGTH: Final = struct.Struct("!i")
_CONNECT_REQUEST: Final = struct.Struct("!iqiq")  # protocol, last zxid, timeout in ms, session id
_CONNECT_RESPONSE: Final = struct.Struct("!iiq")  # protocol, timeout in ms, session id
_REQUEST_HEADER: Final = struct.Struct("!ii")
_REPLY_HEADER: Final = struct.Struct("!iqi")
_CLOSE_SESSION: Final = -11


class MalformedFrame(Unreachable):
    """The bytes are no ZooKeeper frame: the peer speaks another protocol, or TLS.

    :ivar data: the first bytes of what came instead.
    """

    def __init__(self, problem: str, data: bytes) -> None:
        self.data: bytes = data[:16]
        super().__init__(
            f"{problem} (the bytes begin with {self.data!r}); check that the port is "
            "ZooKeeper's client port and whether it expects TLS"
        )


class FrameReader:
    """Cuts a stream of bytes into frames, however the stream was chopped."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream and return the frames they complete.

        :param data: any number of bytes, also none.
        :returns: complete frames in order, each without its length.
        :raises MalformedFrame: a length is negative or above :data:`MAX_FRAME`. Nothing
            after it can be understood, so every further call raises again.
        """
        self._pending += data
        frames = []
        while (end := self._end_of_frame()) is not None:
            frames.append(bytes(self._pending[_LENGTH.size : end]))
            del self._pending[:end]
        return frames

    def _end_of_frame(self) -> int | None:
        if len(self._pending) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._pending)
        if not 0 <= length <= MAX_FRAME:
            raise MalformedFrame(f"a frame of {length} bytes was announced", bytes(self._pending))
        end = _LENGTH.size + length
        return end if len(self._pending) >= end else None


@attrs.frozen(kw_only=True)
class ConnectResponse:
    """What the server granted; the first frame it sends on every connection.

    :ivar timeout: the session timeout granted, in seconds; 0 when the session is unknown.
    :ivar session_id: signed, 64 bit; 0 when the session is unknown.
    :ivar password: whoever has it and the id owns the session, so it is never shown.
    :ivar read_only: the server has no quorum and serves reads only. Servers before 3.4
        do not say; they have no such mode.
    """

    timeout: float
    session_id: int
    password: bytes = attrs.field(repr=False)
    read_only: bool

    @property
    def expired(self) -> bool:
        """The server does not know the session asked for: it has ended."""
        return self.timeout <= 0


@attrs.frozen(kw_only=True)
class ReplyHeader:
    """The head of every frame from the server but the first.

    :ivar xid: number of the request it answers, or one of the special numbers above.
    :ivar zxid: the last transaction the server had applied; -1 in a watch event.
    :ivar error: 0, or a negative code of ``org.apache.zookeeper.KeeperException.Code``.
    """

    xid: int
    zxid: int
    error: int


@attrs.frozen(kw_only=True)
class RequestHeader:
    """The head of every frame from a client but the first."""

    xid: int
    opcode: int


def decode_connect_response(frame: bytes) -> ConnectResponse:
    """Read the first frame a server sends.

    :raises MalformedFrame: the frame is too short to be one.
    """
    _, timeout_ms, session_id = _unpack(_CONNECT_RESPONSE, frame)
    password, rest = _split_buffer(frame, _CONNECT_RESPONSE.size)
    return ConnectResponse(
        timeout=timeout_ms / 1000,
        session_id=session_id,
        password=password,
        read_only=any(rest[:1]),
    )


def decode_reply_header(frame: bytes) -> ReplyHeader:
    """Read the head of a later frame from a server.

    :raises MalformedFrame: the frame is too short to have one.
    """
    xid, zxid, error = _unpack(_REPLY_HEADER, frame)
    return ReplyHeader(xid=xid, zxid=zxid, error=error)


def decode_request_header(frame: bytes) -> RequestHeader:
    """Read the head of a later frame from a client.

    :raises MalformedFrame: the frame is too short to have one.
    """
    xid, opcode = _unpack(_REQUEST_HEADER, frame)
    return RequestHeader(xid=xid, opcode=opcode)


def encode_connect_request(
    *, timeout: float, session_id: int = 0, password: bytes = bytes(16)
) -> bytes:
    """Make the first frame of a connection, its length included.

    :param timeout: session timeout to ask for, in seconds, 0.001 … 2,147,483.
    :param session_id: 0 asks for a new session; another one is resumed.
    :param password: the session's; 16 zero bytes for a new one.
    """
    head = _CONNECT_REQUEST.pack(0, 0, round(timeout * 1000), session_id)
    read_only_allowed = b"\0"
    return _framed(head + _LENGTH.pack(len(password)) + password + read_only_allowed)


def encode_close_request(xid: int) -> bytes:
    """Make the frame that ends the session, its length included.

    :param xid: number of the request, 1 … 2^31-1; the reply carries it.
    """
    return _framed(_REQUEST_HEADER.pack(xid, _CLOSE_SESSION))


def is_four_letter_word(start: bytes) -> bool:
    """Tell a command such as ``ruok`` from the length of a frame.

    :param start: the first bytes from the client, four or more.
    :returns: true for four lower-case letters: as a length they would be above 1.5 GiB.
    """
    word = start[:4]
    return len(word) == 4 and word.isalpha() and word.islower()


def opcode_name(opcode: int) -> str:
    """ZooKeeper's name of a request, or ``opcode N`` for one this table does not have."""
    return OPCODES.get(opcode, f"opcode {opcode}")


def _framed(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def _split_buffer(frame: bytes, offset: int) -> tuple[bytes, bytes]:
    """Split off a jute buffer: its length, then its bytes; -1 stands for none."""
    (length,) = _unpack(_LENGTH, frame, offset)
    start = offset + _LENGTH.size
    end = start + max(length, 0)
    if end > len(frame):
        raise MalformedFrame(f"a buffer of {length} bytes in {len(frame)}", frame)
    return frame[start:end], frame[end:]


def _unpack(layout: struct.Struct, frame: bytes, offset: int = 0) -> tuple[int, ...]:
    try:
        return layout.unpack_from(frame, offset)
    except struct.error as error:
        raise MalformedFrame(f"a frame of {len(frame)} bytes is cut short", frame) from error
