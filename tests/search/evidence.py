"""What a client has seen of its session, as every rule sees it; and what each made of it."""

from __future__ import annotations

import math
from typing import Protocol

from search.timeline import Process
from zkelect.core.lease import Lease

__all__ = ["Belief", "Evidence", "Rule", "Witness"]


class Evidence:
    """The connections, probes and answers of one session, in the client's own clock.

    :ivar timeout: the smallest timeout granted; ``granted`` the last one.
    :ivar started: when the present connection was begun, before the TCP connect.
    :ivar sent: of the probes of this connection; ``answered`` of those that have an answer.
    """

    def __init__(self, tick: float | None) -> None:
        self.tick = tick
        self.timeout = math.inf
        self.granted = math.inf
        self.started = -math.inf
        self.sent: list[float] = []
        self.answered: list[float] = []

    def connect(self, started: float, timeout: float) -> None:
        """Begin anew: a server has answered the handshake."""
        self.sent, self.answered = [], []
        self.started, self.granted = started, timeout
        self.timeout = min(self.timeout, timeout)


class Rule(Protocol):
    """Another way to tell until when a session is safe.

    :ivar deadline: until then, in the client's clock.
    """

    name: str
    deadline: float

    def connected(self, evidence: Evidence, shrunk: bool) -> None:
        """Hear of a new connection; ``shrunk``: it has made the smallest timeout smaller."""

    def answered(self, evidence: Evidence) -> None:
        """Hear of a committed probe."""

    def answered_late(self, evidence: Evidence) -> None:
        """Hear of the answer to a probe that was sent on an earlier connection."""


class Belief:
    """The last instant, in true time, at which a rule held the session to be safe."""

    def __init__(self) -> None:
        self._deadline = -math.inf
        self._since = 0.0
        self._until = -math.inf

    def change(self, now: float, deadline: float) -> None:
        """Note a new deadline; what the old one promised beyond this instant is taken back."""
        self._until = self.until(now)
        self._deadline, self._since = deadline, now

    def until(self, end: float = math.inf) -> float:
        """Return that instant, as far as it lies before ``end``."""
        believed = min(self._deadline, end)
        return max(self._until, believed) if believed > self._since else self._until


class Witness(Lease):
    """The real lease, and beside it other rules that are told the same, and do nothing.

    :ivar course: each deadline of the real lease, with the instant it holds from, both true.
    :ivar probes: how many were committed.
    """

    def __init__(self, client: Process, *, tick: float | None, hops: int) -> None:
        super().__init__(tick=tick, hops=hops)
        self.evidence = Evidence(tick)
        self.rules: list[Rule] = []
        self.beliefs: dict[str, Belief] = {"rule": Belief()}
        self.course: list[tuple[float, float]] = []
        self.probes = 0
        self._told: list[tuple[float, float]] = []
        self._client = client

    def consult(self, rules: list[Rule]) -> None:
        """Let other rules see the same."""
        self.rules = rules
        self.beliefs |= {rule.name: Belief() for rule in rules}
        for rule in rules:
            rule.connected(self.evidence, shrunk=True)

    def connect(self, started: float, timeout: float) -> None:
        super().connect(started, timeout)
        shrunk = timeout < self.evidence.timeout
        self.evidence.connect(started, timeout)
        self._told.append((self._client.timeline.now, self.evidence.timeout))
        for rule in self.rules:
            rule.connected(self.evidence, shrunk)
        self._note()

    def ask(self, at: float) -> None:
        super().ask(at)
        self.evidence.sent.append(at)

    def answer(self, at: float) -> None:
        super().answer(at)
        self.probes += 1
        self.evidence.answered.append(at)
        for rule in self.rules:
            rule.answered(self.evidence)
        self._note()

    def answer_late(self) -> None:
        """Hear of an answer that the library throws away."""
        for rule in self.rules:
            rule.answered_late(self.evidence)
        self._note()

    def least_timeout(self, instant: float) -> float:
        """Return the smallest timeout that the client had been told of by a true instant."""
        return min((timeout for told, timeout in self._told if told <= instant), default=math.inf)

    def promise(self, name: str) -> float:
        """Return the deadline that a rule gives just now, in true time."""
        found = next((rule for rule in self.rules if rule.name == name), self)
        return found.deadline / self._client.rate

    def discard(self) -> None:
        super().discard()
        del self.evidence.sent[len(self.evidence.answered) :]

    def void(self) -> None:
        super().void()
        for rule in self.rules:
            rule.deadline = -math.inf
        self._note()

    def _note(self) -> None:
        now, rate = self._client.timeline.now, self._client.rate
        deadline = self.deadline / rate
        if not self.course or self.course[-1][1] != deadline:
            self.course.append((now, deadline))
            self.beliefs["rule"].change(now, deadline)
        for rule in self.rules:
            self.beliefs[rule.name].change(now, rule.deadline / rate)
