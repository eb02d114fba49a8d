"""A client that writes rows, finds the primary by itself, and remembers what was confirmed."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self

import attrs
import psycopg

from zkelect.testing.ports import LOOPBACK

if TYPE_CHECKING:
    from types import TracebackType

    from recipes.cluster import Cluster

__all__ = ["Confirmed", "Writer"]

_INSERT: Final = (
    "insert into written (number) values (%s)"
    " returning inet_server_port(), extract(epoch from clock_timestamp())::float8"
)


@attrs.frozen
class Confirmed:
    """A row that the server confirmed.

    :ivar at: seconds, by the server's wall clock, when it was written.
    :ivar told: seconds, by the same clock, when the client knew.
    """

    number: int
    port: int
    at: float
    told: float


class Writer:
    """Writes one row after the other until the block ends.

    :param rate: rows a second; None: as fast as it can.
    """

    def __init__(self, cluster: Cluster, *, rate: float | None = None) -> None:
        ports = ",".join(str(node.port) for node in cluster.nodes.values())
        hosts = ",".join(LOOPBACK for _ in cluster.nodes)
        # What PostgreSQL's clients have for this: the server that is open for writes.
        self._conninfo = (
            f"host={hosts} port={ports} user=zkelect dbname=postgres connect_timeout=2"
            " target_session_attrs=read-write tcp_user_timeout=2000"
        )
        self._pace = None if rate is None else 1 / rate
        self._done = threading.Event()
        self._grew = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._number = 0
        self._connection: psycopg.Connection[tuple[int, float]] | None = None
        self.confirmed: list[Confirmed] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Write nothing more; harmless the second time."""
        self._done.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the writer hangs"

    def wait_for(self, rows: int, *, port: int | None = None, timeout: float = 60.0) -> None:
        """Wait until so many more rows are confirmed, by this server if one is named."""
        begun = len(self.confirmed)

        def enough() -> bool:
            return sum(port in (None, row.port) for row in self.confirmed[begun:]) >= rows

        with self._grew:
            assert self._grew.wait_for(enough, timeout), f"not {rows} rows within {timeout} s"

    def pauses(self) -> list[float]:
        """Return how long nothing was confirmed, at each change of the server."""
        pairs = pairwise(self.confirmed)
        return [later.told - earlier.told for earlier, later in pairs if earlier.port != later.port]

    def longest_pause(self) -> float:
        """Return the longest time for which nothing was confirmed."""
        return max(later.told - earlier.told for earlier, later in pairwise(self.confirmed))

    def _work(self) -> None:
        due = time.monotonic()
        while not self._done.is_set():
            self._number += 1
            with suppress(psycopg.Error):
                self._write(self._number)
            if self._pace is not None:
                due = max(due + self._pace, time.monotonic() - 1)
                self._done.wait(max(due - time.monotonic(), 0))
        self._leave()

    def _write(self, number: int) -> None:
        """Write one row; of an error it is not known whether it was written."""
        try:
            if self._connection is None:
                self._connection = psycopg.connect(self._conninfo, autocommit=True)
            row = self._connection.execute(_INSERT, (number,)).fetchone()
        except psycopg.Error:
            self._leave()
            raise
        assert row is not None
        with self._grew:
            self.confirmed.append(Confirmed(number, row[0], row[1], time.time()))
            self._grew.notify_all()

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
