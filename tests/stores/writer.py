"""A process that leads and does as it is told: one order a line in, one answer a line out.

    writer.py FILE TOKEN [--unguarded] [--die-at STEP]

``--unguarded`` is the broken control: its guard lets every write pass. ``--die-at`` kills the
process (SIGKILL) just before that call of its SQLite connections, counted from 0.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import signal
import sqlite3
import sys
from contextlib import closing
from typing import Any
from unittest import mock

from zkelect.errors import ZkelectError
from zkelect.stores.fence import Gate
from zkelect.stores.sqlite import SqliteFence
from zkelect.token import Token


class Mortal(sqlite3.Connection):
    """A connection that dies before its last call."""

    calls = itertools.count()
    last = -1

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._live_or_die()
        return super().execute(*arguments)

    def close(self) -> None:
        self._live_or_die()
        super().close()

    def _live_or_die(self) -> None:
        if next(self.calls) == Mortal.last:
            os.kill(os.getpid(), signal.SIGKILL)


class Writer:
    def __init__(self, path: str, token: Token) -> None:
        self.path, self.token = path, token
        self.fence = SqliteFence(path, domain="d", timeout=60.0)

    def claim(self) -> str:
        self.fence.claim(self.token)
        return "claimed"

    def append(self, entry: str = "") -> str:
        with self.fence.transaction(self.token) as db:
            self._insert(db, entry)
        return "appended"

    def hammer(self) -> str:
        """Append until refused."""
        while True:
            print(self.append(), flush=True)

    def hold(self, entry: str = "") -> str:
        """Append, and keep the transaction open until the next line."""
        with self.fence.transaction(self.token) as db:
            self._insert(db, entry)
            print("holding", flush=True)
            sys.stdin.readline()
        return "released"

    def read(self) -> str:
        """Keep a read lock until the next line."""
        with closing(sqlite3.connect(self.path)) as db:
            reading = db.execute("select * from log")
            reading.fetchone()
            print("reading", flush=True)
            sys.stdin.readline()
        return "released"

    def _insert(self, db: Any, entry: str) -> None:
        db.execute("create table if not exists log (token text, entry text)")
        db.execute("insert into log values (?, ?)", (str(self.token), entry))

    def obey(self, order: str, *words: str) -> str:
        try:
            answer: str = getattr(self, order)(*words)
        except ZkelectError as error:
            return type(error).__name__
        return answer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("token", type=Token.parse)
    parser.add_argument("--unguarded", action="store_true")
    parser.add_argument("--die-at", type=int, default=-1)
    given = parser.parse_args()
    if given.unguarded:
        mock.patch.object(Gate, "guard").start()
    Mortal.last = given.die_at
    mock.patch("sqlite3.connect", functools.partial(sqlite3.connect, factory=Mortal)).start()
    writer = Writer(given.file, given.token)
    for line in iter(sys.stdin.readline, ""):
        print(writer.obey(*line.split()), flush=True)


if __name__ == "__main__":
    main()
