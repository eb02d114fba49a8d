"""One bench for each store that must keep the contract, and what a bench is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from zkelect.stores import Mark, MemoryFence, SqliteFence
from zkelect.token import Token

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from zkelect.stores.fence import Claimant


class Fence(Protocol):
    """What every guarded store has."""

    def claim(self, claimant: Any) -> None: ...

    def status(self) -> Mark | None: ...


class Bench(Protocol):
    """One store, seen from outside: what the contract needs beside the fence itself.

    :ivar volatile: it can come back empty, so that a missing mark counts as lost.
    """

    volatile: bool

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> Fence:
        """Make a fence; two of one domain share the store, as those of two processes do."""

    def write(self, fence: Any, claimant: Any, entry: str) -> None:
        """Make one guarded write: append token and entry to the store's own log."""

    def log(self) -> list[tuple[Token, str]]: ...

    def restore(self, mark: Token | None) -> None:
        """Put the mark of domain d back, as an old backup does."""


class TransactionBench(Bench, Protocol):
    """A store whose guarded transactions stay open for a while."""

    def transaction(self, fence: Any, claimant: Any) -> AbstractContextManager[Any]: ...

    def append(self, transaction: Any, token: Token, entry: str) -> None: ...


def token_of(claimant: Claimant) -> Token:
    return claimant if isinstance(claimant, Token) else claimant.token


def marked(fence: Fence) -> Token | None:
    """Return the token of the store's mark."""
    mark = fence.status()
    return None if mark is None else mark.token


def entries(bench: Bench) -> list[str]:
    return [entry for _, entry in bench.log()]


class MemoryBench:
    volatile = False

    def __init__(self) -> None:
        self._fences: dict[str, MemoryFence] = {}

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> MemoryFence:
        if domain not in self._fences:
            self._fences[domain] = MemoryFence(domain=domain, timeout=timeout)
        return self._fences[domain]

    def write(self, fence: MemoryFence, claimant: Claimant, entry: str) -> None:
        with fence.transaction(claimant) as transaction:
            self.append(transaction, token_of(claimant), entry)

    def transaction(self, fence: MemoryFence, claimant: Claimant) -> AbstractContextManager[Any]:
        return fence.transaction(claimant)

    def append(self, transaction: list[object], token: Token, entry: str) -> None:
        transaction.append(entry)

    def log(self) -> list[tuple[Token, str]]:
        return [(token, str(entry)) for token, entry in self.fence().log]

    def restore(self, mark: Token | None) -> None:
        self.fence().restore(None if mark is None else Mark(token=mark))


class SqliteBench:
    volatile = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> SqliteFence:
        return SqliteFence(self.path, domain=domain, timeout=timeout)

    def write(self, fence: SqliteFence, claimant: Claimant, entry: str) -> None:
        with fence.transaction(claimant) as transaction:
            self.append(transaction, token_of(claimant), entry)

    def transaction(self, fence: SqliteFence, claimant: Claimant) -> AbstractContextManager[Any]:
        return fence.transaction(claimant)

    def append(self, transaction: Any, token: Token, entry: str) -> None:
        transaction.execute("create table if not exists log (token text, entry text)")
        transaction.execute("insert into log values (?, ?)", (str(token), entry))

    def log(self) -> list[tuple[Token, str]]:
        with closing(sqlite3.connect(self.path, timeout=60.0)) as db:
            known = db.execute("select 1 from sqlite_master where name = 'log'").fetchone()
            rows = db.execute("select token, entry from log order by rowid") if known else ()
            return [(Token.parse(token), entry) for token, entry in rows]

    def restore(self, mark: Token | None) -> None:
        with closing(sqlite3.connect(self.path, timeout=60.0)) as db, db:
            db.execute("delete from zkelect_fence where domain = 'd'")
            if mark is not None:
                db.execute("insert into zkelect_fence values ('d', ?, '', '', '')", (str(mark),))
