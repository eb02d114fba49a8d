"""Who may write: nobody until the server is opened.

The lock is ``read_only``, on in the configuration, so that a server that is started anew is closed.
It lets nobody's transaction commit that was open before (error 1290), and holds for everybody but
accounts with READ_ONLY ADMIN, which the agent's alone has (:mod:`.checks` insists). It waits for
the statements that run; so those are killed, and every client is disconnected: it sees at once
that it is to look for another server.

``tx_read_only`` is beside it for the moment of the claim, since the fence, rightly, refuses a
server that is ``read_only``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pymysql

from zkelect.recipes.clock import now
from zkelect.recipes.mariadb.asking import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.recipes.mariadb.asking import Client
    from zkelect.recipes.mariadb.place import Place

__all__ = ["ajar", "close", "close_at_once", "end_claim", "open_for_writes"]

_CLOSE: Final = "SET GLOBAL read_only = ON"
_OPEN: Final = "SET GLOBAL read_only = OFF"
_READ: Final = "SET GLOBAL tx_read_only = ON"
_WRITE: Final = "SET GLOBAL tx_read_only = OFF"
_CLIENTS: Final = (
    "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
    " AND user NOT IN ('system user', 'event_scheduler', %s, %s)"
)
_GONE: Final = 1094  # "Unknown thread id"
_LOCKED: Final = 1205  # "Lock wait timeout exceeded"
_LEAST: Final = 1.0
_WAIT: Final = "SET SESSION lock_wait_timeout = 1"


def close(place: Place, deadline: float) -> None:
    """Let nobody write any more; when it returns, no transaction is under way.

    :raises NoAnswer: the server does not obey.
    """
    with connect(place, deadline) as client:
        client.run(_WAIT)
        try:
            _shut(client)
        except pymysql.OperationalError as error:
            if error.args[0] != _LOCKED:
                raise
            _disconnect(client, place)
            _shut(client)
        _disconnect(client, place)


def close_at_once(place: Place, deadline: float) -> None:
    """Let nobody write any more, and wait for no statement that runs.

    :raises NoAnswer: the server does not obey.
    """
    with connect(place, deadline) as client:
        _disconnect(client, place)
        _shut(client)
        _disconnect(client, place)


def open_for_writes(place: Place, deadline: float) -> None:
    """Let everybody write; an open server is left alone."""
    with connect(place, deadline) as client:
        closed = client.row("SELECT @@global.read_only AS it")["it"]
        end_claim(client)
        if closed:
            _disconnect(client, place)  # their sessions would stay read-only
            client.run(_OPEN)


@contextmanager
def ajar(place: Place, check: Callable[[], object], deadline: float) -> Iterator[None]:
    """Let write, in the block, only who asks for it: sessions begin with ``tx_read_only``.

    :param check: raises when nobody may write here; called right before.
    """
    with connect(place, deadline) as client:
        closed = client.row("SELECT @@global.read_only AS it")["it"]
    try:
        if closed:
            _set_ajar(place, check, deadline)
        yield
    finally:
        if closed:
            with connect(place, max(deadline, now() + _LEAST)) as client:
                _shut(client)


def _set_ajar(place: Place, check: Callable[[], object], deadline: float) -> None:
    with connect(place, deadline) as client:
        client.run(_READ)
        _disconnect(client, place)
        check()
        client.run(_OPEN)


def end_claim(client: Client) -> None:
    """Have sessions begin as usual, also those of replication, if a claim was cut off."""
    client.run(_WRITE)


def _shut(client: Client) -> None:
    client.run(_CLOSE)
    end_claim(client)


def _disconnect(client: Client, place: Place) -> None:
    """End everybody's connection, but the agent's own and those of replication."""
    for row in client.rows(_CLIENTS, place.user, place.replication_user):
        try:
            client.run("KILL CONNECTION %s", row["id"])
        except pymysql.Error as error:
            if error.args[0] != _GONE:
                raise
