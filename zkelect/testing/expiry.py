"""Ends a session the way ZooKeeper does, so that its ephemeral znodes really go."""

from __future__ import annotations

import itertools
import socket
import time
from typing import TYPE_CHECKING, Final, Protocol

from zkelect.errors import ConnectFailed
from zkelect.session import wire
from zkelect.session.hosts import parse
from zkelect.testing.fake_link import FakeLink

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Expirable", "expire"]

_CLOSE_XID: Final = 1
_CHUNK: Final = 4096
_PAUSE: Final = 0.02


class Expirable(Protocol):
    """What is needed of a session: its servers, and what it proves itself with."""

    @property
    def hosts(self) -> str:
        """The connection string."""

    def credentials(self) -> tuple[int, bytes]:
        """Return session id and password."""


def expire(session: Expirable, *, hosts: str | None = None, timeout: float = 5.0) -> None:
    """End somebody's session from outside, and return when the ensemble has agreed.

    Resumes the session on a connection of our own and closes it there, so the ensemble
    commits the end of the session and deletes its ephemeral znodes, as it does when the
    session times out; whoever holds it learns at its next word to a server. Only opening
    a second connection and dropping it, as other test tools do, leaves the znodes. Takes a
    session of a :class:`FakeEnsemble` too.

    :param session: whose; it is not told.
    :param hosts: where to connect instead, for a session behind a forwarder that is cut.
    :param timeout: seconds, above 0.
    :raises ConnectFailed: no server answered in time, or the session has ended already.
    """
    where = session.hosts if hosts is None else hosts
    link = getattr(session, "link", None)
    if isinstance(link, FakeLink):
        _expire_fake(session, link, where, timeout)
        return
    servers = parse(where).servers
    session_id, password = session.credentials()
    connect = wire.encode_connect_request(timeout=timeout, session_id=session_id, password=password)
    deadline = time.monotonic() + timeout
    causes: dict[str, str] = {}
    for host, port in itertools.cycle(servers):
        within = min(deadline - time.monotonic(), timeout / len(servers))
        if within <= 0:
            raise ConnectFailed(where, timeout, causes)
        try:
            known = _close_session((host, port), connect, within)
        except (OSError, wire.MalformedFrame) as error:
            causes[f"{host}:{port}"] = str(error)
            time.sleep(_PAUSE)
            continue
        if known or causes:  # unknown now, after a try without an answer: that try did it
            return
        raise ConnectFailed(where, timeout, {f"{host}:{port}": _ended(session_id)})


def _expire_fake(session: Expirable, link: FakeLink, where: str, timeout: float) -> None:
    """In memory it takes no time, and no connection."""
    session_id, _ = session.credentials()
    if not link.expire(session_id):
        raise ConnectFailed(where, timeout, {where: _ended(session_id)})


def _ended(session_id: int) -> str:
    return f"session {session_id:#x} has ended already"


def _close_session(address: tuple[str, int], connect_request: bytes, within: float) -> bool:
    """Close the session; return False when the server does not know it.

    Both requests leave together: the server keeps the second until the session is ours,
    and its holder has the least time to take the session back in between.
    """
    with socket.create_connection(address, within) as connection:
        connection.sendall(connect_request + wire.encode_close_request(_CLOSE_XID))
        frames = _frames(connection)
        if wire.decode_connect_response(next(frames)).expired:
            return False
        return any(wire.decode_reply_header(frame).xid == _CLOSE_XID for frame in frames)


def _frames(connection: socket.socket) -> Iterator[bytes]:
    reader = wire.FrameReader()
    while data := connection.recv(_CHUNK):
        yield from reader.feed(data)
    raise ConnectionResetError("the server closed the connection before it answered")
