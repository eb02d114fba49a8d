"""SqlFence on a server: the log is a table, and who is caught has its connection ended."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs
from sqlalchemy import Column, Double, Integer, MetaData, String, Table, create_engine, select, text

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from chaos.traps import Trap
from zkelect.stores import SqlFence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

    from chaos.stores import Place
    from zkelect.stores.fence import Claimant

__all__ = ["Dialect", "SqlStore"]

_TIMEOUT: Final = 2.0
_COMMITTED_WITHIN: Final = 0.002
_BEFORE, _AMID = "before the commit", "amid the commit"

_log: Final = Table(
    "log",
    MetaData(),
    Column("number", Integer, primary_key=True),
    Column("op", String(64), nullable=False),
    Column("after", String(64), nullable=False),
    Column("token", String(64), nullable=False),
    Column("at", Double, nullable=False),
)
_LATEST: Final = select(_log.c.op).order_by(_log.c.number.desc()).limit(1)
_ALL: Final = select(_log.c.op, _log.c.after, _log.c.token, _log.c.at)


class Server(Protocol):
    """A server of the tests' own, running while its block lasts."""

    def url(self) -> str:
        """Return SQLAlchemy's URL for it."""


@attrs.frozen(kw_only=True)
class Dialect:
    """What differs between databases.

    :ivar name: of the store. :ivar start: starts a server for a block.
    :ivar own: asks for the connection's number. :ivar end: ends the connection ``:number``.
    :ivar order: of the rows, by their commits.
    """

    name: str
    start: Callable[[], AbstractContextManager[Server]]
    own: str
    end: str
    order: str


class SqlStore:
    """A database server that all candidates connect to."""

    def __init__(self, place: Place, dialect: Dialect) -> None:
        self._dialect = dialect
        self._url = place.directory / f"{dialect.name}.url"
        self._trap = Trap(place.directory / f"{dialect.name}.trap", (_BEFORE, _AMID))

    @contextmanager
    def serve(self) -> Iterator[None]:
        with self._dialect.start() as server:
            self._url.write_text(server.url(), "utf-8")
            _log.create(self._engine)
            yield
            self._engine.dispose()

    def claim(self, claimant: Claimant) -> None:
        self._fence.claim(claimant)

    def read(self) -> str:
        with self._engine.connect() as connection:
            return connection.execute(_LATEST).scalar() or ""

    def append(self, claimant: Claimant, row: Row) -> None:
        with self._fence.transaction(claimant) as connection:
            values = {**attrs.asdict(row), "at": boottime()}
            connection.execute(_log.insert(), values)
            if end := self._trap.spring():
                self._lose(connection, end)

    def log(self) -> Sequence[Row]:
        query = _ALL.order_by(text(self._dialect.order))
        with self._engine.connect() as connection:
            return [Row(**row) for row in connection.execute(query).mappings()]

    def disturb(self) -> AbstractContextManager[None]:
        return self._trap.laid()

    def _lose(self, connection: Connection, end: str) -> None:
        """Have our connection ended now, or about when the commit is under way."""
        number: Any = connection.execute(text(self._dialect.own)).scalar_one()
        another = self._engine.connect()
        delay = 0.0 if end == _BEFORE else random.uniform(0.0, _COMMITTED_WITHIN)
        ending = threading.Timer(delay, self._end, (another, number))
        ending.start()
        if end == _BEFORE:
            ending.join()

    def _end(self, another: Connection, number: int) -> None:
        with another:
            another.execute(text(self._dialect.end), {"number": number})

    @cached_property
    def _engine(self) -> Engine:
        return create_engine(self._url.read_text("utf-8"))

    @cached_property
    def _fence(self) -> SqlFence:
        return SqlFence(self._engine, domain=DOMAIN, timeout=_TIMEOUT)
