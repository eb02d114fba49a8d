"""Wrong rules. Each is the right one with one mistake that somebody would make.

A search that does not break every one of them is worth nothing.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from search.evidence import Evidence
from zkelect.core.lease import SLACK, Lease

__all__ = ["CONTROLS", "OneHop", "Pipelined", "Transcription"]


class Transcription:
    """The right rule, as docs/lease.md says it: what the mistakes are made in."""

    name = "transcription"
    rate: ClassVar[float] = 0.98

    def __init__(self) -> None:
        self.deadline = -math.inf

    def connected(self, evidence: Evidence, shrunk: bool) -> None:
        if shrunk:
            self.deadline = min(self.deadline, self.reach(evidence, evidence.started))

    def answered(self, evidence: Evidence) -> None:
        self.deadline = max(self.deadline, self.reach(evidence, self.base(evidence)))

    def answered_late(self, evidence: Evidence) -> None:
        """It was asked on one connection and answered on another: no evidence."""

    def base(self, evidence: Evidence) -> float:
        """Return the instant from which the timeout counts."""
        return self.touched(evidence, behind=2)

    def reach(self, evidence: Evidence, base: float) -> float:
        """Return how far the timeout reaches."""
        return base + self.rate * self.timeout(evidence) - 0.05

    def timeout(self, evidence: Evidence) -> float:
        """Return the session timeout to count with."""
        return evidence.timeout

    def touched(self, evidence: Evidence, behind: int) -> float:
        """Return when the youngest probe was sent that a probe so far behind k makes certain."""
        last = len(evidence.answered) - 1
        if last >= behind:
            tick = evidence.timeout / 2 if evidence.tick is None else evidence.tick
            limit = evidence.sent[last - behind] - (1.01 * tick / 2 + SLACK)
            for j in range(last - behind - 1, -1, -1):
                if evidence.answered[j] <= limit:
                    return evidence.sent[j]
        return evidence.started


class LastAnswer(Transcription):
    """An acknowledged write buys a full timeout.

    But the follower tells the leader of it only when it is next pinged, and may die first.
    """

    name = "last answer + T"

    def base(self, evidence: Evidence) -> float:
        return evidence.sent[len(evidence.answered) - 1]


class Handshake(Transcription):
    """A server that resumes the session has proven it.

    But a deposed leader resumes whatever it remembers.
    """

    name = "handshake"

    def connected(self, evidence: Evidence, shrunk: bool) -> None:
        super().connected(evidence, shrunk)
        self.deadline = max(self.deadline, self.reach(evidence, evidence.started))


class OneProbeLess(Transcription):
    """The probe after the ping has brought the news up.

    But a stalled leader commits that probe first and pings then; the ping, or its answer,
    may be lost although the next probe is committed.
    """

    name = "k-1"

    def base(self, evidence: Evidence) -> float:
        return self.touched(evidence, behind=1)


class LastGranted(Transcription):
    """The timeout is the one that the server granted.

    But a new leader takes the one of the session's creation.
    """

    name = "last granted T"

    def connected(self, evidence: Evidence, shrunk: bool) -> None:
        """Nothing: a smaller one counts from the next answer on."""

    def timeout(self, evidence: Evidence) -> float:
        return evidence.granted


class Rates(Transcription):
    """Clocks are good: one percent is enough for both together."""

    name = "0.99 T"
    rate: ClassVar[float] = 0.99


class AcrossConnections(Transcription):
    """An answer is an answer, whatever connection the probe was sent on.

    But then it is taken for the answer to the probe that is under way on the new one, and
    the new one may lead to a deposed leader.
    """

    name = "across connections"

    def answered_late(self, evidence: Evidence) -> None:
        self.deadline = max(self.deadline, self.reach(evidence, evidence.started))


CONTROLS: Final[tuple[type[Transcription], ...]] = (
    LastAnswer,
    Handshake,
    OneProbeLess,
    LastGranted,
    Rates,
    AcrossConnections,
)


class OneHop:
    """The real lease with one hop, where the news takes two: behind an observerMasterPort.

    The follower in between keeps it until it is pinged itself.
    """

    name = "one hop"

    def __init__(self, tick: float | None) -> None:
        self._lease = Lease(tick=tick)
        self.deadline = -math.inf

    def connected(self, evidence: Evidence, shrunk: bool) -> None:
        self._lease.connect(evidence.started, evidence.granted)
        self.deadline = self._lease.deadline

    def answered(self, evidence: Evidence) -> None:
        self._lease.ask(evidence.sent[-1])
        self._lease.answer(evidence.answered[-1])
        self.deadline = max(self.deadline, self._lease.deadline)

    def answered_late(self, evidence: Evidence) -> None:
        """No evidence."""


class Pipelined(Transcription):
    """The right formula over probes that overlap.

    But then the next one does not wait for the answer: while the leader is stalled many
    are under way, it commits them all at once when it wakes, and pings after that.
    """

    name = "pipelined"
