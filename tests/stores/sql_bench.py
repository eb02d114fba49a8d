"""The bench of the SQL fence, on any database that SQLAlchemy reaches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from stores.benches import token_of

from zkelect.stores.sql import SqlFence
from zkelect.stores.sql_table import fence_table
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from zkelect.stores.fence import Claimant

__all__ = ["SqlBench", "engine_of"]

_METADATA = sa.MetaData()
_MARKS = fence_table(_METADATA)
_LOG = sa.Table(
    "log",
    _METADATA,
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("token", sa.String(59), nullable=False),
    sa.Column("entry", sa.String(255), nullable=False),
)
_APPEND = sa.text("insert into log (token, entry) values (:token, :entry)")


@contextmanager
def engine_of(url: str | sa.URL, **options: Any) -> Iterator[sa.Engine]:
    """Lend an engine; more threads than it has connections wait for one."""
    engine = sa.create_engine(url, **options)
    try:
        yield engine
    finally:
        engine.dispose()


class SqlBench:
    """A database with the store's own log in it."""

    volatile = False

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        _LOG.create(engine)

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> SqlFence:
        return SqlFence(self.engine, domain=domain, timeout=timeout)

    def transaction(
        self, fence: SqlFence, claimant: Claimant
    ) -> AbstractContextManager[sa.Connection]:
        return fence.transaction(claimant)

    def append(self, transaction: sa.Connection, token: Token, entry: str) -> None:
        transaction.execute(_APPEND, {"token": str(token), "entry": entry})

    def write(self, fence: SqlFence, claimant: Claimant, entry: str) -> None:
        with fence.transaction(claimant) as transaction:
            self.append(transaction, token_of(claimant), entry)

    def log(self) -> list[tuple[Token, str]]:
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(_LOG).order_by(_LOG.c.position))
            return [(Token.parse(row.token), row.entry) for row in rows]

    def restore(self, mark: Token | None) -> None:
        """Put the mark back; the server stays the one that it was made on."""
        change = sa.delete(_MARKS) if mark is None else sa.update(_MARKS).values(token=str(mark))
        with self.engine.begin() as connection:
            connection.execute(change.where(_MARKS.c.domain == "d"))
