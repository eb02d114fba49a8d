"""Asking a server: a connection that waits no longer than a deadline for each answer."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.cursors import DictCursor

from zkelect import ZkelectError
from zkelect.recipes.deadlines import left
from zkelect.recipes.faults import is_ours
from zkelect.recipes.mariadb.place import split_address
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zkelect.recipes.mariadb.place import Place

__all__ = ["Client", "NoAnswer", "account", "connect", "connect_to", "join_local"]

_LONGEST: Final = 3.0
# Access denied, or host not allowed (MariaDB, "MariaDB Error Code Reference").
_REFUSED: Final = (1044, 1045, 1129, 1130, 1698)
_WRITING: Final = "SET SESSION tx_read_only = OFF"  # whatever the server's sessions begin with
_CR_CONN_HOST_ERROR: Final = 2003


class NoAnswer(ZkelectError, NotNow):
    """The server did not answer, or answered with an error; PyMySQL's is the ``__cause__``.

    :ivar code: MariaDB's number of the error; the driver's own begin at 2000.
    :ivar refused: there is a server, and it lets us not in.
    :ivar ours: it could not even be asked, by a fault on this host.
    """

    def __init__(self, error: pymysql.Error) -> None:
        first = next(iter(error.args), 0)
        self.code = first if isinstance(first, int) else 0
        self.refused = self.code in _REFUSED
        self.ours = is_ours(error)
        super().__init__(" ".join(str(part) for part in error.args) or type(error).__name__)


class Client:
    """One connection, in autocommit, and what is asked through it."""

    def __init__(self, connection: pymysql.Connection[Any]) -> None:
        self._connection = connection

    def run(self, statement: str, *values: object) -> None:
        """Run a statement; its values are quoted here."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)

    def rows(self, query: str, *values: object) -> list[Mapping[str, Any]]:
        """Return what a query finds."""
        with self._connection.cursor(DictCursor) as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())

    def row(self, query: str, *values: object) -> Mapping[str, Any]:
        """Return the first row; empty: there is none."""
        return next(iter(self.rows(query, *values)), {})


def join_local(connection: pymysql.Connection[Any], place: Place, seconds: float) -> None:
    """Connect one, made with ``defer_connect``, to our own server.

    PyMySQL by itself leaves the socket open when it is refused.
    """
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(seconds)
    try:
        wire.connect(str(place.socket))
    except OSError as error:
        wire.close()
        raise _unreached(place.socket, error) from error
    connection.connect(wire)


def account(place: Place, seconds: float) -> dict[str, Any]:
    """Return the driver's arguments for a connection of the agent's."""
    return {
        "user": place.user,
        "password": place.password,
        "charset": "utf8mb4",
        "ssl_disabled": True,  # else PyMySQL loads the host's certificates for each connection
        "read_timeout": seconds,
        "write_timeout": seconds,
        "defer_connect": True,
        "init_command": _WRITING,
    }


@contextmanager
def connect(place: Place, deadline: float) -> Iterator[Client]:
    """Lend a connection to our own server.

    :raises NoAnswer: also when a statement in the block fails.
    """
    seconds = min(left(deadline), _LONGEST)
    with _translated(), pymysql.connect(**account(place, seconds), autocommit=True) as connection:
        join_local(connection, place, seconds)
        yield Client(connection)


@contextmanager
def connect_to(place: Place, address: str, deadline: float) -> Iterator[Client]:
    """Lend a connection to another member's server.

    :raises NoAnswer: also when a statement in the block fails.
    """
    seconds = min(left(deadline), _LONGEST)
    with _translated(), pymysql.connect(**account(place, seconds), autocommit=True) as connection:
        _join_remote(connection, split_address(address), seconds)
        yield Client(connection)


def _join_remote(
    connection: pymysql.Connection[Any], address: tuple[str, int], seconds: float
) -> None:
    try:
        wire = socket.create_connection(address, seconds)
    except OSError as error:
        raise _unreached(address, error) from error
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.connect(wire)


def _unreached(address: object, error: OSError) -> pymysql.OperationalError:
    return pymysql.OperationalError(_CR_CONN_HOST_ERROR, f"no connection to {address}: {error}")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except pymysql.Error as error:
        raise NoAnswer(error) from error
