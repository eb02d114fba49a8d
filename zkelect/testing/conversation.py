"""Names the frames of one connection as its bytes go by. Pure: no socket, no clock."""

from __future__ import annotations

from typing import Final, Literal

from zkelect.session import wire

__all__ = ["REPLIES", "REQUESTS", "Conversation", "Direction"]

Direction = Literal["requests", "replies"]
REQUESTS: Final[Direction] = "requests"
REPLIES: Final[Direction] = "replies"

_CONNECT: Final = "connect"
_SPECIAL: Final = {
    wire.WATCH_EVENT_XID: "event",
    wire.PING_XID: "ping",
    wire.AUTH_XID: "auth",
}


class Conversation:
    """Both directions of one connection.

    A frame is told as its name and xid. The name is ZooKeeper's own name of the request
    (a reply carries that of its request), ``connect`` for the first frame each way,
    ``event`` for a watch event, or the four-letter word itself. A connection that speaks
    no ZooKeeper (TLS, say) is told from then on as nothing.
    """

    def __init__(self) -> None:
        self._readers = {REQUESTS: wire.FrameReader(), REPLIES: wire.FrameReader()}
        self._greeted: set[Direction] = set()
        self._asked: dict[int, str] = {}
        self._start = b""
        self._understood = True

    def hear(self, direction: Direction, data: bytes) -> list[tuple[str, int | None]]:
        """Take the next bytes of one direction; return name and xid of each frame they end."""
        if not self._understood:
            return []
        if direction == REQUESTS and len(self._start) < 4:
            self._start = (self._start + data)[:4]
            if wire.is_four_letter_word(self._start):
                self._understood = False
                return [(self._start.decode("ascii"), None)]
        try:
            frames = self._readers[direction].feed(data)
            return [self._name(direction, frame) for frame in frames]
        except wire.MalformedFrame:
            self._understood = False
            return []

    def _name(self, direction: Direction, frame: bytes) -> tuple[str, int | None]:
        if direction not in self._greeted:
            self._greeted.add(direction)
            return _CONNECT, None
        return self._request(frame) if direction == REQUESTS else self._reply(frame)

    def _request(self, frame: bytes) -> tuple[str, int]:
        header = wire.decode_request_header(frame)
        name = wire.opcode_name(header.opcode)
        self._asked[header.xid] = name
        return name, header.xid

    def _reply(self, frame: bytes) -> tuple[str, int]:
        xid = wire.decode_reply_header(frame).xid
        asked = self._asked.pop(xid, "unasked")
        return _SPECIAL.get(xid, asked), xid
