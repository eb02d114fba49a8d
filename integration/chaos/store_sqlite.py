"""SqliteFence. Its connection lives in the candidate: who is in its transaction is killed, or
stopped where it stands with the file's lock in its hands, which nobody can take from it.
"""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from zkelect.stores import SqliteFence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from chaos.stores import Store
    from zkelect.stores.fence import Claimant

__all__ = ["make"]

_TIMEOUT: Final = 2.0
_SPRUNG_WITHIN: Final = 0.1
_LOG: Final = """CREATE TABLE IF NOT EXISTS log
    (number INTEGER PRIMARY KEY, op TEXT, after TEXT, token TEXT, at REAL)"""
_APPEND: Final = "INSERT INTO log (op, after, token, at) VALUES (?, ?, ?, ?)"
_LATEST: Final = "SELECT op FROM log ORDER BY number DESC LIMIT 1"
_ALL: Final = "SELECT op, after, token, at FROM log ORDER BY number"


class _Sqlite:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "sqlite.db"
        self._trap = directory / "sqlite.trap"
        self._signals = itertools.cycle((signal.SIGKILL, signal.SIGSTOP))
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
            self._spring()

    def log(self) -> Sequence[Row]:
        rows = self._query(_ALL)
        return [Row(op=op, after=after, token=token, at=float(at)) for op, after, token, at in rows]

    @contextmanager
    def disturb(self) -> Iterator[None]:
        fresh = self._trap.with_suffix(".new")
        fresh.write_text(str(int(next(self._signals))), "ascii")
        fresh.rename(self._trap)
        try:
            yield
        finally:
            if not _remove(self._trap):
                time.sleep(_SPRUNG_WITHIN)  # so that who is to go on has been stopped before

    def _spring(self) -> None:
        with suppress(FileNotFoundError):
            number = int(self._trap.read_text("ascii"))
            if _remove(self._trap):
                os.kill(os.getpid(), number)

    def _query(self, sql: str) -> list[tuple[str, ...]]:
        with closing(sqlite3.connect(self._path, timeout=_TIMEOUT)) as connection, connection:
            return connection.execute(sql).fetchall()


def _remove(trap: Path) -> bool:
    """Remove it; False when somebody was faster."""
    try:
        trap.unlink()
    except FileNotFoundError:
        return False
    return True


def make(directory: Path) -> Store:
    """Return the store whose file is in the folder."""
    return _Sqlite(directory)
