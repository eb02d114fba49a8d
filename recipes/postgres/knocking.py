"""Whether anybody is there who answers, when we are not let in.

libpq tells of a connection that failed in words only, in the server's language, and in the same
way whether nobody listens, the password is wrong, or the server takes no encryption. So the first
message of the protocol is sent by ourselves, and the first answer read (PostgreSQL,
"Frontend/Backend Protocol", "Start-up" and "Message Formats").
"""

from __future__ import annotations

import socket
import struct
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Final

from psycopg.conninfo import conninfo_to_dict

from zkelect.recipes.clock import now
from zkelect.recipes.faults import is_ours
from zkelect.recipes.member import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["knock"]

_VERSION: Final = 3 << 16
_ERROR: Final = b"E"
_SHUT: Final = "57P"  # shutting down, crashed, or starting: nobody is let in
_LONGEST: Final = 8192


def knock(conninfo: str, deadline: float) -> Answer:
    """Ask for a session. NO: nobody answers, or lets anybody in. UNKNOWN: somebody is there.

    :param conninfo: with which libpq has failed.
    """
    answers = {_answer(*place, conninfo, deadline) for place in _places(conninfo)}
    return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.NO


def _places(conninfo: str) -> Iterator[tuple[str, int]]:
    fields = conninfo_to_dict(conninfo)
    hosts = str(fields.get("hostaddr") or fields.get("host") or "localhost").split(",")
    ports = str(fields.get("port") or 5432).split(",")
    return ((host, int(port)) for host, port in zip(hosts, cycle(ports), strict=False))


def _answer(host: str, port: int, conninfo: str, deadline: float) -> Answer:
    try:
        with _connect(host, port, deadline) as wire:
            wire.sendall(_greeting(conninfo))
            first = wire.recv(_LONGEST)
    except OSError as error:  # its name, too, may be gone with the host
        return Answer.UNKNOWN if is_ours(error) else Answer.NO
    shut = not first or (first.startswith(_ERROR) and _state(first).startswith(_SHUT))
    return Answer.NO if shut else Answer.UNKNOWN


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    seconds = max(deadline - now(), 0.001)
    if not host.startswith("/"):
        return socket.create_connection((host, port), seconds)
    with ExitStack() as failed:
        wire = failed.enter_context(socket.socket(socket.AF_UNIX))
        wire.settimeout(seconds)
        wire.connect(str(Path(host) / f".s.PGSQL.{port}"))
        failed.pop_all()
    return wire


def _greeting(conninfo: str) -> bytes:
    fields = conninfo_to_dict(conninfo)
    user = str(fields.get("user") or "postgres")
    words = ("user", user, "database", str(fields.get("dbname") or user))
    body = b"".join(word.encode() + b"\0" for word in words) + b"\0"
    return struct.pack("!II", len(body) + 8, _VERSION) + body


def _state(message: bytes) -> str:
    """Return the SQLSTATE of an error message, empty when it tells none."""
    fields = message[5:].split(b"\0")
    return next((field[1:].decode("ascii", "replace") for field in fields if field[:1] == b"C"), "")
