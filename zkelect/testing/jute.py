"""Reads ZooKeeper's encoding far enough to find the paths in a frame, and to change them.

Layouts as in ``zookeeper.jute`` of ZooKeeper 3.8. Pure: bytes in, values out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from zkelect.session import wire
from zkelect.testing.conversation import REQUESTS, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["EVENTS", "kind_of_event", "pack_text", "paths_in", "replace_texts"]

_INT: Final = struct.Struct("!i")
_REQUEST_HEADER: Final = 8
_REPLY_HEADER: Final = 16
_STAT: Final = 68

_CREATIONS: Final = frozenset({"create", "create2", "createContainer", "createTTL"})
_WITH_PATH: Final = _CREATIONS | {
    "delete", "exists", "getData", "setData", "getACL", "setACL", "getChildren", "getChildren2",
    "sync", "check", "addWatch", "removeWatches", "checkWatches", "getEphemerals",
    "getAllChildrenNumber", "deleteContainer",
}  # fmt: skip
"""Requests whose body begins with their path."""

_EVENTS: Final = {1: "created", 2: "deleted", 3: "changed", 4: "child", -1: "none"}

EVENTS: Final = tuple(_EVENTS.values())
"""The kinds of change that watch events tell."""


class _Cursor:
    """Walks over a frame; what it passes over is told as where it stands."""

    def __init__(self, frame: bytes, at: int) -> None:
        self.frame, self.at = frame, at

    def integer(self) -> int:
        if len(self.frame) < self.at + _INT.size:
            raise wire.MalformedFrame("a frame ends in the middle of a number", self.frame)
        (value,) = _INT.unpack_from(self.frame, self.at)
        self.at += _INT.size
        return int(value)

    def text(self) -> tuple[int, int]:
        """Pass over a text or buffer; return where it stands, length included."""
        start = self.at
        self.skip(max(self.integer(), 0))
        return start, self.at

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.frame):
            raise wire.MalformedFrame("a frame ends before its body does", self.frame)


def kind_of_event(frame: bytes) -> str:
    """Tell a watch event's kind: created, deleted, changed, child or none; or what it is."""
    try:
        kind = _Cursor(frame, _REPLY_HEADER).integer()
    except wire.MalformedFrame:
        return "malformed"
    return _EVENTS.get(kind, f"kind {kind}")


def paths_in(message: Message) -> tuple[str, ...]:
    """Return the paths a message is about: a reply those of its request, an event its own."""
    asking = message.request if message.request is not None else message
    try:
        return tuple(_text(asking.frame, span) for span in _spans(asking))
    except wire.MalformedFrame:
        return ()


def replace_texts(message: Message, replace: Callable[[str], str]) -> bytes:
    """Return the message's bytes with its paths and names of children replaced."""
    frame, made, at = message.frame, b"", 0
    for start, end in _spans(message):
        made += frame[at:start] + pack_text(replace(_text(frame, (start, end))))
        at = end
    made += frame[at:]
    return _INT.pack(len(made)) + made


def pack_text(text: str) -> bytes:
    """Encode a text."""
    data = text.encode("utf-8")
    return _INT.pack(len(data)) + data


def _text(frame: bytes, span: tuple[int, int]) -> str:
    return frame[span[0] + _INT.size : span[1]].decode("utf-8", "backslashreplace")


def _spans(message: Message) -> Iterator[tuple[int, int]]:
    """Find where paths and names stand in a message."""
    if message.direction == REQUESTS:
        yield from _spans_of_request(message)
    elif message.name == "event":
        cursor = _Cursor(message.frame, _REPLY_HEADER + 2 * _INT.size)
        yield cursor.text()
    elif message.xid is not None and wire.decode_reply_header(message.frame).error == 0:
        yield from _spans_of_reply(message)


def _spans_of_request(message: Message) -> Iterator[tuple[int, int]]:
    cursor = _Cursor(message.frame, _REQUEST_HEADER)
    if message.name in _WITH_PATH:
        yield cursor.text()
    elif message.name in ("multi", "multiRead"):
        for name in _operations(cursor):
            yield cursor.text()
            _skip_operation(cursor, name)


def _spans_of_reply(message: Message) -> Iterator[tuple[int, int]]:
    cursor = _Cursor(message.frame, _REPLY_HEADER)
    if message.name in _CREATIONS:
        yield cursor.text()
    elif message.name in ("getChildren", "getChildren2", "getEphemerals"):
        for _ in range(cursor.integer()):
            yield cursor.text()
    elif message.name == "multi":
        for name in _operations(cursor):
            if name in _CREATIONS:
                yield cursor.text()
            _skip_result(cursor, name)


def _operations(cursor: _Cursor) -> Iterator[str]:
    """Pass over the header of each operation of a multi (MultiHeader: type, done, err)."""
    while True:
        opcode = cursor.integer()
        done = cursor.frame[cursor.at : cursor.at + 1]
        cursor.skip(1 + _INT.size)
        if done == b"\1":
            return
        yield wire.opcode_name(opcode)


def _skip_operation(cursor: _Cursor, name: str) -> None:
    """Pass over what follows the path in a request's operation."""
    if name in _CREATIONS:
        cursor.text()
        for _ in range(cursor.integer()):
            cursor.skip(_INT.size)
            cursor.text()
            cursor.text()
        cursor.skip(_INT.size + (8 if name == "createTTL" else 0))
    elif name == "setData":
        cursor.text()
        cursor.skip(_INT.size)
    elif name in ("delete", "check"):
        cursor.skip(_INT.size)
    else:  # the reads of a multiRead: whether to watch
        cursor.skip(1)


def _skip_result(cursor: _Cursor, name: str) -> None:
    """Pass over a result of a multi, but for the path of a creation."""
    if name in ("create2", "createContainer", "createTTL", "setData"):
        cursor.skip(_STAT)
    elif name not in ("create", "delete", "check"):  # an error
        cursor.skip(_INT.size)
