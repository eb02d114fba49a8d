"""What the library must never do: send probes without waiting for answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from search.controls import Pipelined
from search.evidence import Witness
from zkelect.core.lease import pace_of, patience_of

if TYPE_CHECKING:
    from search.client import Client

__all__ = ["Flood", "PipelinedWitness"]


class PipelinedWitness(Witness):
    """A lease that takes overlapping probes; the wrong rule is the one that leads."""

    def ask(self, at: float) -> None:
        self.evidence.sent.append(at)

    def answer(self, at: float) -> None:
        self.probes += 1
        self.evidence.answered.append(at)
        for rule in self.rules:
            rule.answered(self.evidence)
            if isinstance(rule, Pipelined):
                self.deadline = rule.deadline
        self._note()

    def discard(self) -> None:
        del self.evidence.sent[len(self.evidence.answered) :]

    @property
    def pending(self) -> bool:
        """Whether a probe is under way."""
        return len(self.evidence.sent) > len(self.evidence.answered)


class Flood:
    """A prober that sends at its pace, whatever the server does."""

    def __init__(self, client: Client, answered: Callable[[bool], None]) -> None:
        self._client = client
        self._tell = answered
        self._connection = 0
        self._sent = -math.inf

    def begin(self, lease: Witness, connection: int) -> None:
        """Start with a new connection."""
        self._connection, self._sent = connection, -math.inf

    def halt(self) -> None:
        """The connection is gone."""
        self._client.lease.discard()
        self._connection = 0

    def hurry(self) -> None:
        """It hurries anyway."""

    def due(self, now: float) -> float:
        """Send if it is time; return when to be asked again."""
        client = self._client
        if not self._connection or not client.roster.warm:
            return math.inf
        pace = pace_of(client.lease.timeout)
        if now >= self._sent + pace:
            self._sent = now
            client.lease.ask(now)
            connection = self._connection
            client.gateway.multi((), lambda _: self._receive(connection), urgent=True)
        return self._sent + min(pace, patience_of(client.lease.timeout))

    def _receive(self, connection: int) -> None:
        if connection == self._connection:
            self._client.lease.answer(self._client.boottime())
            self._tell(True)
