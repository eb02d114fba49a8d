"""Which promotions the data have been through: a table that is replicated with them.

A GTID names the server that wrote, and not in which of its times as the primary. So every
promotion enters itself, in its first transaction, and each server tells by what it has applied on
which branch it is. The sequence numbers go on from one branch to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
from sqlalchemy import MetaData
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from zkelect import stores
from zkelect.recipes.mariadb.gtid import last, parse_set
from zkelect.recipes.position import Branch, Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zkelect.recipes.mariadb.asking import Client
    from zkelect.recipes.mariadb.gtid import Gtid

__all__ = [
    "Promotion",
    "begin",
    "end_of",
    "enter",
    "locate",
    "make_tables",
    "read_promotions",
    "trespasser",
]

_FIRST: Final = "first"
_MAKE: Final = (
    "CREATE TABLE `{database}`.zkelect_promotions ("
    " start BIGINT UNSIGNED NOT NULL PRIMARY KEY,"
    " server_id INT UNSIGNED NOT NULL,"
    " branch CHAR(16) CHARACTER SET ascii NOT NULL UNIQUE"
    ") ENGINE=InnoDB"
)
_EXISTS: Final = (
    "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
)
_TABLE: Final = "zkelect_promotions"
_READ: Final = "SELECT start, server_id, branch FROM `{database}`.zkelect_promotions ORDER BY start"
_ENTER: Final = (
    "INSERT INTO `{database}`.zkelect_promotions (start, server_id, branch)"
    " SELECT %s, %s, %s FROM DUAL WHERE NOT EXISTS"
    " (SELECT 1 FROM `{database}`.zkelect_promotions WHERE branch = %s)"
)


@attrs.frozen
class Promotion:
    """One promotion.

    :ivar start: the last sequence number before it. :ivar server: who was promoted, its id.
    :ivar branch: of history, which began with it.
    """

    start: int
    server: int
    branch: str


def end_of(told: Mapping[str, Any]) -> Gtid | None:
    """Return the last transaction that a server has, its own or applied; None: it has none."""
    written, applied = parse_set(told["written"]), parse_set(told["applied"])
    return last(told["domain"], written, applied)


def locate(end: Gtid | None, promotions: Iterable[Promotion]) -> Position:
    """Return the position of a server whose last transaction this is."""
    sequence = 0 if end is None else end.sequence
    branches = [Branch(each.branch, each.start) for each in _before(sequence, promotions)]
    return Position((Branch(_FIRST), *branches), sequence)


def begin(promotion: Promotion, before: Position) -> Position:
    """Return the position at which a branch begins of which nothing is written yet."""
    return Position((*before.history, Branch(promotion.branch, promotion.start)), promotion.start)


def trespasser(end: Gtid | None, promotions: Iterable[Promotion]) -> bool:
    """Tell whether somebody else than the primary of its time wrote the last transaction."""
    if end is None:
        return False
    known = _before(end.sequence, promotions)
    return bool(known) and known[-1].server != end.server


def read_promotions(client: Client, database: str) -> tuple[Promotion, ...]:
    """Return those that the server's data have been through."""
    if not client.row(_EXISTS, database, _TABLE):
        return ()
    rows = client.rows(_READ.format(database=database))
    return tuple(Promotion(*row.values()) for row in rows)


def make_tables(client: Client, database: str) -> None:
    """Make the tables that a promotion is written to, if there are none yet.

    A CREATE TABLE IF NOT EXISTS would be a transaction each time.
    """
    fences = stores.fence_table(MetaData(), schema=database)
    if not client.row(_EXISTS, database, fences.name):
        client.run(str(CreateTable(fences).compile(dialect=mysql.dialect())))
    if not client.row(_EXISTS, database, _TABLE):
        client.run(_MAKE.format(database=database))


def enter(cursor: Any, database: str, promotion: Promotion) -> None:
    """Enter a promotion in the transaction of this cursor; once for each branch."""
    values = (promotion.start, promotion.server, promotion.branch, promotion.branch)
    cursor.execute(_ENTER.format(database=database), values)


def _before(sequence: int, promotions: Iterable[Promotion]) -> list[Promotion]:
    """Return those whose first transaction is there: the table is read after the position."""
    return [each for each in promotions if each.start < sequence]
