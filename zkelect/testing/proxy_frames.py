"""Frames a fault proxy makes or changes. Pure: bytes in, bytes out, lengths included."""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from zkelect.errors import InvalidArgument
from zkelect.session import wire
from zkelect.testing.jute import pack_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zkelect.testing.conversation import Message

__all__ = [
    "ERRORS",
    "answer_with",
    "error_code",
    "harmless_request",
    "new_session_request",
    "question_of",
    "reply",
    "resumed_session",
    "resumes",
    "rewritten_body",
    "rewritten_welcome",
]

ERRORS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "SystemError": -1,
        "RuntimeInconsistency": -2,
        "ConnectionLoss": -4,
        "Unimplemented": -6,
        "OperationTimeout": -7,
        "BadArguments": -8,
        "NoNode": -101,
        "NoAuth": -102,
        "BadVersion": -103,
        "NodeExists": -110,
        "NotEmpty": -111,
        "SessionExpired": -112,
        "InvalidACL": -114,
        "AuthFailed": -115,
        "SessionMoved": -118,
        "NotReadOnly": -119,
        "RequestTimeout": -122,
        "SessionClosedRequireAuth": -124,
        "QuotaExceeded": -125,
        "ThrottledOp": -127,
    }
)
"""Errors by name (``org.apache.zookeeper.KeeperException.Code``, 3.8); any number may be given."""

_LENGTH: Final = struct.Struct("!i")
_REQUEST_HEADER: Final = struct.Struct("!ii")
_REPLY_HEADER: Final = struct.Struct("!iqi")
_CONNECT_REQUEST: Final = struct.Struct("!iqiqi16s")
_EXISTS: Final = 3
_BEFORE_SESSION: Final = 16
_WATCHING_READS: Final = frozenset({"exists", "getData", "getChildren", "getChildren2"})


def error_code(error: int | str) -> int:
    """Return the code of an error given by number or by ZooKeeper's name.

    :raises InvalidArgument: neither a negative 32-bit number nor a name that is known.
    """
    code = ERRORS.get(error) if isinstance(error, str) else error
    if code is None or not -(2**31) <= code < 0:
        raise InvalidArgument("error", error, f"a negative code, or one of {', '.join(ERRORS)}")
    return code


# --- handshake --------------------------------------------------------------------------------


def resumed_session(message: Message) -> int:
    """Return which session a connect request wants to go on with, 0 for a new one."""
    field = message.frame[_BEFORE_SESSION : _BEFORE_SESSION + 8]
    return int.from_bytes(field, "big", signed=True)


def resumes(message: Message) -> bool:
    """Tell a connect request that goes on with a session."""
    return resumed_session(message) != 0


def new_session_request(message: Message) -> bytes:
    """Make a connect request ask for a new session, with a timeout as it was asked for."""
    _, _, timeout, _ = struct.unpack_from("!iqiq", message.frame)
    return _framed(_CONNECT_REQUEST.pack(0, 0, timeout, 0, 16, bytes(16)) + b"\0")


def rewritten_welcome(
    message: Message,
    *,
    session_id: int | None = None,
    timeout: float | None = None,
    read_only: bool | None = None,
) -> bytes:
    """Change what a connect response grants; None leaves it as it is. The password stays."""
    granted = wire.decode_connect_response(message.frame)
    password = granted.password
    return _framed(
        struct.pack(
            "!iiqi",
            0,
            round((granted.timeout if timeout is None else timeout) * 1000),
            granted.session_id if session_id is None else session_id,
            len(password),
        )
        + password
        + bytes([granted.read_only if read_only is None else read_only])
    )


# --- requests and replies ---------------------------------------------------------------------


def harmless_request(xid: int) -> bytes:
    """Make a read that changes and watches nothing, to be answered in another one's place."""
    return _framed(_REQUEST_HEADER.pack(xid, _EXISTS) + pack_text("/") + b"\0")


def reply(xid: int, *, zxid: int = 0, error: int = 0, body: bytes = b"") -> bytes:
    """Make a reply."""
    return _framed(_REPLY_HEADER.pack(xid, zxid, error) + body)


def answer_with(older: bytes, xid: int) -> bytes:
    """Make an older reply, its length included, answer another request."""
    start = _LENGTH.size
    return older[:start] + _LENGTH.pack(xid) + older[start + _LENGTH.size :]


def rewritten_body(rewrite: Callable[[bytes], bytes], message: Message) -> bytes:
    """Change what follows the header of a reply."""
    header = message.frame[: _REPLY_HEADER.size]
    return _framed(header + rewrite(message.frame[_REPLY_HEADER.size :]))


def question_of(request: Message) -> bytes:
    """Return what a read asks for: equal for equal questions, watched or not, whatever the xid."""
    body = request.frame[_LENGTH.size :]
    return body[:-1] if request.name in _WATCHING_READS else body


def _framed(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body
