"""What elector and keeper tell each other: one message of JSON at a time, over a socket.

The socket keeps messages apart and in order (SOCK_SEQPACKET), and hands over a whole one or
none. Each side sees at once that the other has ended, however that came.
"""

from __future__ import annotations

import json
import socket
from enum import StrEnum
from typing import Any, Final, NamedTuple

__all__ = [
    "Cause",
    "Channel",
    "Dead",
    "End",
    "Ending",
    "Hold",
    "Message",
    "Pass",
    "Ready",
    "Refused",
    "Start",
    "Started",
]

_LONGEST: Final = 1 << 17


class Cause(StrEnum):
    """Why a command ends."""

    EXITED = "exited"
    """By itself."""
    LATE = "late"
    """The lease was not renewed in time."""
    ORDERED = "ordered"
    """It was told to, or whoever tells is gone."""


# --- from the elector ------------------------------------------------------------------------


class Start(NamedTuple):
    """Start the command.

    :ivar environment: what is added to ours. :ivar deadline: until when it may run.
    :ivar grace: seconds from asking it to end to killing it.
    """

    environment: dict[str, str]
    deadline: float
    grace: float


class Hold(NamedTuple):
    """The lease was renewed: it may run until then."""

    deadline: float


class Pass(NamedTuple):
    """Send a signal to all that came of the command.

    :ivar typed: the terminal has sent it to the elector's process group already.
    """

    number: int
    typed: bool


class End(NamedTuple):
    """The leadership is over: ask it to end, and kill it when the grace is over, or at once."""

    at_once: bool


# --- from the keeper -------------------------------------------------------------------------


class Ready(NamedTuple):
    """The keeper is there.

    :ivar cgroup: the folder of its control group; empty: it has none. :ivar why: not.
    """

    cgroup: str
    why: str


class Started(NamedTuple):
    """The command runs."""

    pid: int


class Refused(NamedTuple):
    """The command could not be started; ``Dead`` follows."""

    errno: int


class Ending(NamedTuple):
    """The end has begun.

    :ivar cause: one of :class:`Cause`.
    :ivar status: the command's own if it has ended, 128 + n when signal n ended it.
    """

    cause: str
    status: int = 0


class Dead(NamedTuple):
    """Nothing that came of the command is alive."""


Message = Start | Hold | Pass | End | Ready | Started | Refused | Ending | Dead

_KINDS: Final[dict[str, Any]] = {
    kind.__name__: kind for kind in (Start, Hold, Pass, End, Ready, Started, Refused, Ending, Dead)
}


class Channel:
    """One end of the socket; nothing here waits.

    :ivar closed: the other side has ended, or has let go of it.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end: Final = end
        self.closed = False

    def fileno(self) -> int:
        """For select(2): readable when there is a message, or when it is closed."""
        return self._end.fileno()

    def send(self, message: Message) -> bool:
        """Send it; False: the other side is gone, or has not read for so long that all is full."""
        try:
            self._end.send(json.dumps([type(message).__name__, *message]).encode("ascii"))
        except BlockingIOError:
            return False
        except OSError:
            self.closed = True
            return False
        return True

    def receive(self) -> Message | None:
        """Return the next message; None: there is none now, or never again (``closed``)."""
        try:
            data = self._end.recv(_LONGEST)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return None
        kind, *fields = json.loads(data)
        message: Message = _KINDS[kind](*fields)
        return message

    def close(self) -> None:
        """Let go of it: the other side sees that."""
        self._end.close()
