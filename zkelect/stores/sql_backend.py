"""What the SQL fence asks of one kind of database. Each kind answers in a module of its own.

Everything here is plain and synchronous: statements run on a ``sqlalchemy.Connection``. The
asynchronous fence runs the same code, by ``AsyncConnection.run_sync``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table
    from sqlalchemy.exc import DBAPIError

    from zkelect.stores.mark import Mark

__all__ = ["Backend", "Fault", "Limits", "Phase", "Sight", "Unfit"]


@attrs.frozen(kw_only=True)
class Limits:
    """How long the server may let one transaction last, in seconds.

    :param wait: for a lock. :param lease: for one statement, and idle between two of them;
        None where nobody has a lease: then what the server is set to stays.
    """

    wait: float
    lease: float | None


@attrs.frozen(kw_only=True)
class Sight:
    """What was found at the server, under a lock that holds until the transaction ends.

    :param origin: the server's identity; it may be empty when there is no mark.
    """

    mark: Mark | None
    origin: str


class Unfit(Exception):
    """This server, as it is set up, cannot keep the promise; becomes UnfitStore at the edge."""


class Fault(enum.Enum):
    """What a database's error means to the fence."""

    BUSY = "somebody else holds the lock"
    CONFLICT = "to be run again as a whole: serialization failure or deadlock"
    OVERTIME = "the server ended the statement after the time it was given"
    UNFIT = "the server does not let us do this"
    LOST = "the connection is gone"
    OTHER = "anything else"


class Phase(enum.Enum):
    """How far the server has come with the transaction of a connection."""

    NOT_BEGUN = "no statement has been sent yet, or the transaction has ended"
    OPEN = "statements have been sent, all was well"
    FAILED = "a statement has failed: the server will roll back, also on COMMIT"


class Backend(Protocol):
    """One kind of database. Errors are the driver's, as SQLAlchemy wraps them, or Unfit.

    :param table: the fence's table, with its schema. :param name: it, quoted for SQL.
    """

    def __init__(self, *, domain: str, table: Table, name: str) -> None: ...

    def status(self, connection: Connection, limits: Limits) -> Mark | None:
        """Read the mark, without any lock that outlasts the statement; None without a table."""

    def claim(self, connection: Connection, limits: Limits) -> Sight:
        """Look whether the server is fit, make the table, then wait until this claim is alone.

        It is alone when every guarded transaction of the domain that is open has ended, and no
        other begins before this one ends. Comes first in its transaction.

        :raises Unfit: the server, as it is set up, cannot keep the promise.
        """

    def record(self, connection: Connection, mark: Mark, *, found: bool) -> None:
        """Write the mark, over the one that was found, if any."""

    def guard(self, connection: Connection, limits: Limits) -> Sight:
        """Hold claims off until the transaction ends, and only then read the committed mark.

        Comes first in its transaction; others may be inside at the same time.

        :raises Unfit: the statement was a transaction by itself (AUTOCOMMIT), or this server
            takes no writes.
        """

    def check(self, statement: str) -> None:
        """Refuse a statement of the user's that would end the guarded transaction unnoticed.

        :raises InvalidArgument: it would.
        """

    def is_over(self, error: DBAPIError) -> bool:
        """Whether the error has ended the whole transaction without the driver's knowing."""

    def release(self, connection: Connection) -> None:
        """Put back what outlasts a transaction, just before it is committed or rolled back."""

    def phase(self, connection: Connection) -> Phase:
        """Tell, without asking the server, how far the connection's transaction is."""

    @staticmethod
    def fault(error: DBAPIError) -> Fault:
        """Tell what an error means."""

    @staticmethod
    def reason(error: DBAPIError) -> str:
        """Tell an error's words, and what to do about it if that is known."""

    def holders(self, connection: Connection) -> str:
        """Name who holds the domain now, for the message of StoreBusy; empty if nobody shows."""
