"""The demo's log: numbered rows in a SQLite file, each written under the fence."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import attrs

from zkelect.stores import SqliteFence
from zkelect.stores.fence import Claimant
from zkelect.token import Token

__all__ = ["DOMAIN", "Row", "append", "open_log", "read"]

DOMAIN: Final = "demo"

# The number is SQLite's rowid: one above the highest in the table. Writers exclude each other
# (BEGIN IMMEDIATE), so the numbers rise in the order of the commits.
_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS log (
        number INTEGER PRIMARY KEY,
        token TEXT NOT NULL,
        name TEXT NOT NULL,
        entry TEXT NOT NULL
    )"""
_APPEND: Final = "INSERT INTO log (token, name, entry) VALUES (?, ?, ?)"
_ROWS: Final = "SELECT number, token, name, entry FROM log ORDER BY number"


@attrs.frozen
class Row:
    """One row.

    :ivar number: its place in the order of the commits. :ivar token: its writer's.
    :ivar name: its writer's. :ivar entry: what was written, different each time: a number that
        was lost is given again, and the next row would pass for the lost one.
    """

    number: int
    token: Token
    name: str
    entry: str


def open_log(fence: SqliteFence, claimant: Claimant) -> None:
    """Claim the log for a new term, and make its table if this is the first one.

    :raises Refused: a later leader has claimed it.
    """
    fence.claim(claimant)
    with fence.transaction(claimant) as log:
        log.execute(_TABLE)


def append(fence: SqliteFence, claimant: Claimant, name: str) -> Row:
    """Append a row and return it, once it is durable.

    :param claimant: a leadership, or a bare token as a service gets it over the wire.
    :raises LeadershipLost: the lease is over; the file was not even opened.
    :raises Fenced: a later leader has claimed the log; nothing was written.
    """
    token = claimant if isinstance(claimant, Token) else claimant.token
    entry = secrets.token_hex(4)
    with fence.transaction(claimant) as log:
        number = log.execute(_APPEND, (str(token), name, entry)).lastrowid
    assert number is not None  # an INSERT has one
    return Row(number, token, name, entry)


def read(path: Path) -> tuple[Row, ...]:
    """Read all rows in the order of their commits, round the fence; none of a log never made."""
    if not path.exists():
        return ()
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
        made = file.execute("SELECT 1 FROM sqlite_master WHERE name = 'log'").fetchone()
        rows = file.execute(_ROWS).fetchall() if made else []
    return tuple(Row(number, Token.parse(token), *rest) for number, token, *rest in rows)
