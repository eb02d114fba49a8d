"""Clients that write through what stands in front of a cluster, and count what they are spared."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import attrs
import psycopg
from recipes.background import Background
from recipes.writer import Confirmed

__all__ = ["Failed", "FrontWriter"]

_INSERT: Final = (
    "insert into written (number) values (%s)"
    " returning inet_server_port(), extract(epoch from clock_timestamp())::float8"
)
_RETRY: Final = 0.01
_CLIENTS: Final = 4


@attrs.frozen
class Failed:
    """A row of which a client was not told that it is there; it may be.

    :ivar told: seconds, by the wall clock, when it was told.
    """

    number: int
    told: float
    text: str


class FrontWriter(Background):
    """Some clients, each with a connection of its own, that write until the block ends.

    :param connect: as clients do. :param rate: rows a second of all of them together.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], *, rate: float) -> None:
        super().__init__(*[self._work] * _CLIENTS)
        self._connect = connect
        self._pace = _CLIENTS / rate
        self._numbers = itertools.count(1)
        self._grew = threading.Condition()
        self.confirmed: list[Confirmed] = []
        self.failed: list[Failed] = []

    def wait_for(self, rows: int, *, port: int) -> None:
        """Wait until so many more rows are confirmed by the server at this port."""
        begun = len(self.confirmed)

        def enough() -> bool:
            return sum(row.port == port for row in self.confirmed[begun:]) >= rows

        with self._grew:
            assert self._grew.wait_for(enough, 60), f"not {rows} rows at {port}: {self.failed[-5:]}"

    def pause(self) -> float:
        """Return the longest time for which nothing was confirmed."""
        told = sorted(row.told for row in self.confirmed)
        return max(later - earlier for earlier, later in pairwise(told))

    def _work(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        due = time.monotonic()
        while not self.done.is_set():
            connection = self._write(next(self._numbers), connection)
            due = max(due + self._pace, time.monotonic() - 1)
            self.done.wait(max(due - time.monotonic(), 0))
        if connection is not None:
            connection.close()

    def _write(
        self, number: int, connection: psycopg.Connection[Any] | None
    ) -> psycopg.Connection[Any] | None:
        """Write one row; return the connection if it is good still."""
        try:
            connection = self._connect() if connection is None else connection
            row = connection.execute(_INSERT, (number,)).fetchone()
        except psycopg.Error as error:
            self.failed.append(Failed(number, time.time(), " ".join(str(error).split())))
            self.done.wait(_RETRY)
            if connection is not None:
                connection.close()
            return None
        assert row is not None
        with self._grew:
            self.confirmed.append(Confirmed(number, row[0], row[1], time.time()))
            self._grew.notify_all()
        return connection
