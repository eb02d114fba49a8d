"""The fence's table: one row for each domain, in the same database as the data."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import CheckConstraint, Column, MetaData, String, Table
from sqlalchemy.schema import CreateTable

from zkelect.stores.mark import LONGEST, Mark
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Dialect

__all__ = ["TABLE", "ddl", "fence_table", "mark_of", "row_of"]

TABLE: Final = "zkelect_fence"
_TOKEN_LENGTH: Final = 59


def _text(length: int) -> String:
    """Return a text compared byte by byte, whatever the database's default collation is."""
    text = String(length)
    return text.with_variant(String(length, collation="utf8mb4_bin"), "mysql", "mariadb")


def fence_table(metadata: MetaData, *, schema: str | None = None) -> Table:
    """Add the fence's table to this metadata and return it: for Alembic and ``create_all``.

    The fence creates it at the first claim, if it may; a program whose tables are made by
    migrations calls this beside its models, and grants SELECT, INSERT and UPDATE on it.

    :param metadata: where it is added; calling twice gives the same table.
    :param schema: the one given to :class:`SqlFence`; None for the connection's own.
    """
    return Table(
        TABLE,
        metadata,
        Column("domain", _text(LONGEST), primary_key=True),
        Column("token", _text(_TOKEN_LENGTH), nullable=False),
        Column("election", _text(LONGEST), nullable=False),
        Column("holder", _text(LONGEST), nullable=False),
        Column("origin", _text(LONGEST), nullable=False),
        CheckConstraint(f"length(token) = {_TOKEN_LENGTH}", name="zkelect_fence_token"),
        schema=schema,
        keep_existing=True,
        mysql_engine="InnoDB",
        mariadb_engine="InnoDB",
    )


def ddl(table: Table, dialect: Dialect) -> str:
    """Return the statement that creates the table, on one line: for a message."""
    return " ".join(str(CreateTable(table).compile(dialect=dialect)).split())


def mark_of(row: Sequence[str] | None) -> Mark | None:
    """Return the mark of a row that begins with token, election, holder, origin.

    :raises InvalidArgument: the token in it is none.
    """
    return None if row is None else _mark(*row[:4])


@lru_cache(maxsize=64)
def _mark(token: str, election: str, holder: str, origin: str) -> Mark:
    """Make the mark; of a term's transactions each reads the same row."""
    return Mark(token=Token.parse(token), election=election, holder=holder, origin=origin)


def row_of(domain: str, mark: Mark) -> dict[str, str]:
    """Return the row of a domain's mark."""
    return {
        "domain": domain,
        "token": str(mark.token),
        "election": mark.election,
        "holder": mark.holder,
        "origin": mark.origin,
    }
