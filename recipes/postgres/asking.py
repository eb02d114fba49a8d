"""Asking a server: SQL and replication commands, cut off when no answer comes in time.

libpq waits for ever for a server that is frozen in the middle of an answer, and its own
timeouts do not cover Unix sockets. So a timer shuts the socket, which ends the wait.
"""

from __future__ import annotations

import math
import os
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg

from zkelect import ZkelectError
from zkelect.recipes.deadlines import left
from zkelect.recipes.postgres.lsn import Lsn
from zkelect.recipes.postgres.timelines import History
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.recipes.position import Position

__all__ = ["NoAnswer", "ask", "connect", "cut_at", "locate"]

_LEAST_CONNECT_TIMEOUT: Final = 2  # libpq takes 1 for 2


class NoAnswer(ZkelectError, NotNow):
    """The server did not answer, or answered with an error; PostgreSQL's is the ``__cause__``.

    :ivar sqlstate: of the error, None when the server said nothing.
    """

    def __init__(self, error: psycopg.Error) -> None:
        self.sqlstate = error.sqlstate
        super().__init__(" ".join(str(error).split()))


@contextmanager
def connect(conninfo: str, deadline: float, **options: Any) -> Iterator[psycopg.Connection[Any]]:
    """Lend a connection in autocommit, which is cut at the deadline.

    It may write where others may not yet; see :mod:`.gate`.

    :raises NoAnswer: also when a statement in the block fails.
    """
    seconds = max(math.ceil(left(deadline)), _LEAST_CONNECT_TIMEOUT)
    parameters = {
        "connect_timeout": seconds,
        "application_name": "zkelect",
        "client_encoding": "utf8",  # else texts of an SQL_ASCII database are bytes
        **options,
    }
    try:
        with (
            psycopg.connect(conninfo, autocommit=True, **parameters) as connection,
            cut_at(deadline, connection),
        ):
            yield connection
    except psycopg.Error as error:
        raise NoAnswer(error) from error


def ask(conninfo: str, query: str, deadline: float, *values: object) -> tuple[Any, ...]:
    """Run one statement that returns one row; return the row.

    :param values: of its placeholders, ``%s``.
    :raises NoAnswer: it failed, or did not end by the deadline.
    """
    with connect(conninfo, deadline, options="-c default_transaction_read_only=off") as connection:
        row = connection.execute(query.encode(), values or None).fetchone()
    return row or ()


def locate(conninfo: str, deadline: float) -> Position:
    """Return what a server has durably: its timeline's history and the end of its WAL.

    Of a standby it is the later of what is replayed and what is received on the same timeline
    (PostgreSQL, "Streaming Replication Protocol", IDENTIFY_SYSTEM).

    :raises NoAnswer: among others when the role may not replicate.
    """
    with connect(conninfo, deadline, replication="true") as connection:
        row = connection.execute("IDENTIFY_SYSTEM").fetchone()
        assert row is not None  # so the protocol says
        system, timeline, at, _ = row
        history = History.parse(timeline, _history_text(connection, timeline))
    return history.position(_text(system), Lsn.parse(_text(at)))


def _history_text(connection: psycopg.Connection[Any], timeline: int) -> str:
    if timeline == 1:
        return ""
    row = connection.execute(f"TIMELINE_HISTORY {timeline}".encode()).fetchone()
    return _text(row[1]) if row else ""


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


@contextmanager
def cut_at(deadline: float, connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Let no wait for an answer over this connection, in the block, last beyond the deadline."""
    with socket.socket(fileno=os.dup(connection.fileno())) as wire:
        timer = threading.Timer(left(deadline), _cut, (wire,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _cut(wire: socket.socket) -> None:
    with suppress(OSError):  # the server was first
        wire.shutdown(socket.SHUT_RDWR)
