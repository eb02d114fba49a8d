"""Cuts the bytes of one connection into frames and names them. Pure: no socket, no clock."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from zkelect.session import wire

__all__ = ["REPLIES", "REQUESTS", "Conversation", "Direction", "Message"]

Direction = Literal["requests", "replies"]
REQUESTS: Final[Direction] = "requests"
REPLIES: Final[Direction] = "replies"

_CONNECT: Final = "connect"
_LENGTH: Final = 4
_SPECIAL: Final = {
    wire.WATCH_EVENT_XID: "event",
    wire.PING_XID: "ping",
    wire.AUTH_XID: "auth",
}


@attrs.frozen(kw_only=True)
class Message:
    """One frame, or bytes that are none.

    :ivar name: ZooKeeper's own name of the request (a reply carries that of its request),
        ``connect`` for the first frame each way, ``event`` for a watch event, or the
        four-letter word itself; None for bytes that are no frame.
    :ivar xid: number of the request; None for ``connect`` and what is no frame.
    :ivar data: the bytes as they came, the frame's length included.
    :ivar request: what a reply answers.
    """

    direction: Direction
    data: bytes
    name: str | None = None
    xid: int | None = None
    request: Message | None = None

    @property
    def frame(self) -> bytes:
        """The bytes without the length."""
        return self.data[_LENGTH:]


class Conversation:
    """Both directions of one connection.

    A connection that speaks no ZooKeeper (TLS, say) is told from then on as bytes without
    a name, just as they come.
    """

    def __init__(self) -> None:
        self._unread: dict[Direction, bytes] = {REQUESTS: b"", REPLIES: b""}
        self._greeted: set[Direction] = set()
        self._asked: dict[int, Message] = {}
        self._begun = False
        self._understood = True

    @property
    def owing(self) -> bool:
        """Whether a request is unanswered, pings and the like apart."""
        return any(xid >= 0 for xid in self._asked)

    def hear(self, direction: Direction, data: bytes) -> list[tuple[str, int | None]]:
        """Take the next bytes of one direction; return name and xid of each frame they end."""
        messages = self.read(direction, data)
        return [(each.name, each.xid) for each in messages if each.name is not None]

    def read(self, direction: Direction, data: bytes) -> list[Message]:
        """Take the next bytes of one direction; return what they complete, every byte once."""
        unread = self._unread[direction] + data
        self._unread[direction] = b""
        if direction == REQUESTS and not self._begun:
            if len(unread) < _LENGTH:
                self._unread[direction] = unread
                return []
            self._begun = True
            if wire.is_four_letter_word(unread):
                self._understood = False
                word = unread[:_LENGTH].decode("ascii")
                return [Message(direction=direction, data=unread, name=word)]
        return self._cut(direction, unread)

    def _cut(self, direction: Direction, unread: bytes) -> list[Message]:
        try:
            if self._understood:
                frames = wire.FrameReader().feed(unread)
                self._unread[direction] = unread[sum(len(f) + _LENGTH for f in frames) :]
                return [self._name(direction, frame) for frame in frames]
        except wire.MalformedFrame:
            self._understood = False
            self._unread[direction] = b""
        return [Message(direction=direction, data=unread)]

    def _name(self, direction: Direction, frame: bytes) -> Message:
        data = len(frame).to_bytes(_LENGTH, "big") + frame
        if direction not in self._greeted:
            self._greeted.add(direction)
            return Message(direction=direction, data=data, name=_CONNECT)
        return self._request(frame, data) if direction == REQUESTS else self._reply(frame, data)

    def _request(self, frame: bytes, data: bytes) -> Message:
        header = wire.decode_request_header(frame)
        name = wire.opcode_name(header.opcode)
        asked = Message(direction=REQUESTS, data=data, name=name, xid=header.xid)
        self._asked[header.xid] = asked
        return asked

    def _reply(self, frame: bytes, data: bytes) -> Message:
        xid = wire.decode_reply_header(frame).xid
        request = self._asked.pop(xid, None)
        name = _SPECIAL.get(xid, "unasked" if request is None else request.name)
        return Message(direction=REPLIES, data=data, name=name, xid=xid, request=request)
