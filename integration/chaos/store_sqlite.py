"""SqliteFence. Its connection lives in the candidate: who is in its transaction is killed, or
stopped where it stands with the file's lock in its hands, which nobody can take from it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from chaos.traps import FALLS, Trap, fall
from zkelect.stores import SqliteFence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from chaos.stores import Place, Store
    from zkelect.stores.fence import Claimant

__all__ = ["make"]

_TIMEOUT: Final = 2.0
_LOG: Final = """CREATE TABLE IF NOT EXISTS log
    (number INTEGER PRIMARY KEY, op TEXT, after TEXT, token TEXT, at REAL)"""
_APPEND: Final = "INSERT INTO log (op, after, token, at) VALUES (?, ?, ?, ?)"
_LATEST: Final = "SELECT op FROM log ORDER BY number DESC LIMIT 1"
_ALL: Final = "SELECT op, after, token, at FROM log ORDER BY number"


class _Sqlite:
    def __init__(self, place: Place) -> None:
        self._path = place.directory / "sqlite.db"
        self._trap = Trap(place.directory / "sqlite.trap", FALLS)
        self._fence = SqliteFence(self._path, domain=DOMAIN, timeout=_TIMEOUT)

    @contextmanager
    def serve(self) -> Iterator[None]:
        self._query(_LOG)
        yield

    def claim(self, claimant: Claimant) -> None:
        self._fence.claim(claimant)

    def read(self) -> str:
        return "".join(op for (op,) in self._query(_LATEST))

    def append(self, claimant: Claimant, row: Row) -> None:
        with self._fence.transaction(claimant) as transaction:
            transaction.execute(_APPEND, (row.op, row.after, row.token, boottime()))
            fall(self._trap.spring())

    def log(self) -> Sequence[Row]:
        rows = self._query(_ALL)
        return [Row(op=op, after=after, token=token, at=float(at)) for op, after, token, at in rows]

    def disturb(self) -> AbstractContextManager[None]:
        return self._trap.laid()

    def _query(self, sql: str) -> list[tuple[str, ...]]:
        with closing(sqlite3.connect(self._path, timeout=_TIMEOUT)) as connection, connection:
            return connection.execute(sql).fetchall()


def make(place: Place) -> Store:
    """Return the store whose file is in the run's folder."""
    return _Sqlite(place)
