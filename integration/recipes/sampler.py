"""Asks every server, again and again, whether it takes writes at this instant."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

import attrs
import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from recipes.cluster import Cluster, Node

__all__ = ["Sample", "Sampler", "terms"]

_EVERY: Final = 0.004
# The setting is what a new transaction begins with; in recovery it is on by itself.
_QUERY: Final = (
    "select extract(epoch from clock_timestamp())::float8,"
    " not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off'"
)


@attrs.frozen(order=True)
class Sample:
    """What a server said.

    :ivar at: seconds, by the server's wall clock; all servers are on one machine.
    """

    at: float
    server: str
    writable: bool


class Sampler:
    """Samples all servers of a cluster while the block lasts.

    A server that does not answer takes no writes at that instant; when it answers late, the
    sample is of the instant at which it answers.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._done = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(node,), name=f"sampler {name}", daemon=True)
            for name, node in cluster.nodes.items()
        ]
        self._samples: list[Sample] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(30)

    @property
    def samples(self) -> list[Sample]:
        """All of them until now, in the order of time."""
        return sorted(self._samples)

    def _work(self, node: Node) -> None:
        while not self._done.wait(_EVERY):
            with suppress(psycopg.Error), node.connect() as connection:
                self._follow(node, connection)

    def _follow(self, node: Node, connection: psycopg.Connection[tuple[float, bool]]) -> None:
        while not self._done.wait(_EVERY):
            row = connection.execute(_QUERY).fetchone()
            assert row is not None
            self._samples.append(Sample(row[0], node.name, row[1]))


def terms(instants: Iterable[tuple[float, str]]) -> list[tuple[str, float, float]]:
    """Fold instants at which a server took writes into terms: who, from when, until when.

    Two servers that take writes at the same time take turns here: far more terms than promotions.
    """
    folded: list[tuple[str, float, float]] = []
    for at, server in sorted(instants):
        if folded and folded[-1][0] == server:
            folded[-1] = (server, folded[-1][1], at)
        else:
            folded.append((server, at, at))
    return folded
