"""Asks every server, again and again, whether it takes writes at this instant."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
from recipes.background import Background

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recipes.cluster import Cluster
    from recipes.node import Client, Node

__all__ = ["Sample", "Sampler", "terms"]

_EVERY: Final = 0.004


@attrs.frozen(order=True)
class Sample:
    """What a server said.

    :ivar at: seconds, by the server's wall clock; all servers are on one machine.
    """

    at: float
    server: str
    writable: bool


class Sampler(Background):
    """Samples all servers of a cluster while the block lasts.

    A server that does not answer takes no writes at that instant; when it answers late, the
    sample is of the instant at which it answers.
    """

    def __init__(self, cluster: Cluster[Any]) -> None:
        super().__init__(*(partial(self._work, node) for node in cluster.nodes.values()))
        self._samples: list[Sample] = []

    @property
    def samples(self) -> list[Sample]:
        """All of them until now, in the order of time."""
        return sorted(self._samples)

    def _work(self, node: Node) -> None:
        while not self.done.wait(_EVERY):
            with suppress(*node.errors), node.client() as client:
                self._follow(node.name, client)

    def _follow(self, server: str, client: Client) -> None:
        while not self.done.wait(_EVERY):
            at, writable = client.probe()
            self._samples.append(Sample(at, server, writable))


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
