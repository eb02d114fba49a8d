"""A client that writes numbers, finds the primary by itself, and remembers what was confirmed."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import attrs
from recipes.background import Background

if TYPE_CHECKING:
    from recipes.cluster import Cluster
    from recipes.node import Client, Node

__all__ = ["Confirmed", "Writer"]

_RETRY: Final = 0.002


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


class Writer(Background):
    """Writes one row after the other until the block ends.

    It tries the servers in turn until one takes a write, and stays with that.

    :param rate: rows a second; None: as fast as it can.
    """

    def __init__(self, cluster: Cluster[Any], *, rate: float | None = None) -> None:
        super().__init__(self._work)
        self._nodes: list[Node] = list(cluster.nodes.values())
        self._errors = cluster.kind.errors
        self._pace = None if rate is None else 1 / rate
        self._grew = threading.Condition()
        self._number = 0
        self._client: Client | None = None
        self.confirmed: list[Confirmed] = []

    def wait_for(self, rows: int, *, port: int | None = None, timeout: float = 120.0) -> None:
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
        while not self.done.is_set():
            self._number += 1
            self._try_to_write(self._number)
            if self._pace is not None:
                due = max(due + self._pace, time.monotonic() - 1)
                self.done.wait(max(due - time.monotonic(), 0))
        self._leave()

    def _try_to_write(self, number: int) -> None:
        """Write one row; of an error it is not known whether it was written."""
        try:
            self._write(number)
        except self._errors:
            self._leave()
            self._nodes.append(self._nodes.pop(0))
            self.done.wait(_RETRY)

    def _write(self, number: int) -> None:
        node = self._nodes[0]
        if self._client is None:
            self._client = node.client()
        at = self._client.write(number)
        with self._grew:
            self.confirmed.append(Confirmed(number, node.port, at, time.time()))
            self._grew.notify_all()

    def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
