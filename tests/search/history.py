"""One history: run from its seed, and judged."""

from __future__ import annotations

import math
from random import Random
from typing import Final

import attrs

from search.adversary import Adversary
from search.campaign import Term
from search.client import Client
from search.controls import CONTROLS, OneHop, OneProbeLess, Pipelined
from search.ensemble import Ensemble
from search.evidence import Rule
from search.scenario import Question, Scenario, draw
from search.timeline import Timeline

__all__ = ["History", "Verdict", "judge"]

_FIRST_SESSION: Final = 10


@attrs.frozen(kw_only=True)
class Verdict:
    """What came of one history.

    :ivar slacks: of each rule, seconds from the last instant at which it held an expired
        session to be safe to the one at which a leader decided to expire it; a negative
        one is a violation.
    :ivar gap: least seconds from the last instant at which a leader may have held itself to
        be one to the grant of another, where its session had expired; ``handovers`` of them.
    :ivar left: the same where it had left by itself.
    :ivar unheard: whether a session was touched with a timeout its client never heard of.
    """

    seed: int
    slacks: dict[str, float]
    gap: float
    handovers: int
    left: float
    expired: int
    leaders: int
    probes: int
    unheard: bool
    scenario: Scenario


class History:
    """An ensemble, one or two clients, and an adversary.

    :param scenario: drawn from the seed when None.
    """

    def __init__(self, seed: int, question: Question, scenario: Scenario | None = None) -> None:
        self.seed = seed
        self.question = question
        self.chance = Random(seed)
        self.scenario = draw(self.chance, question) if scenario is None else scenario
        self.timeline = Timeline()
        self.ensemble = Ensemble(self.timeline, self.chance, self.scenario)
        self.office: list[Term] = []
        sessions = range(_FIRST_SESSION, _FIRST_SESSION + 1 + self.scenario.heir)
        self.clients = [self._client(number, session) for number, session in enumerate(sessions)]
        if self.scenario.home is not None:
            self.clients[0].link.next = self.ensemble.servers[self.scenario.home]
        self.adversary = Adversary(self.ensemble, self.clients[0], self.chance)

    def _client(self, number: int, session: int) -> Client:
        rate = self.scenario.rates[len(self.ensemble.servers) + number]
        hops = self.question.hops
        client = Client(self.ensemble, session, rate, self.office, self.chance, hops)
        if self.question.pipelined:
            client.pipeline()
        client.lease.consult(self._controls())
        return client

    def _controls(self) -> list[Rule]:
        """Return the wrong rules that this question is about."""
        if self.question.pipelined:
            return [Pipelined()]
        if self.question.hops > 1:
            return [OneHop(self.scenario.told_tick)]
        return [control() for control in CONTROLS]

    def run(self) -> None:
        """Let it happen."""
        self.ensemble.open({client.number: self.scenario.created for client in self.clients})
        subtle = OneHop.name if self.question.hops > 1 else OneProbeLess.name
        self.adversary.begin(cunning=bool(self.question.adversary), subtle=subtle)
        for client in self.clients:
            self.adversary.trouble_client(client)
            self.timeline.at(self.chance.uniform(0, 0.1), client, client.link.dial)
            if self.scenario.resigns:
                self._resign_later(client)
        self.timeline.run(self.scenario.horizon, self._decided)

    def _resign_later(self, client: Client) -> None:
        pause = self.chance.expovariate(1 / (1.5 * self.scenario.timeout))
        self.timeline.at(self.timeline.now + pause, client, self._resign, client)

    def _resign(self, client: Client) -> None:
        """Several leaderships of one session; while it does not stand its lease goes cold."""
        if not client.over and not self.adversary.struck:
            client.candidate.resign(self.chance.uniform(0, self.scenario.timeout))
            self._resign_later(client)

    def _decided(self) -> bool:
        """Whether the target's session is closed, and the heir has had its time."""
        closed = self.ensemble.ledger.closed
        first, *others = self.clients
        if first.number not in closed:
            return False
        late = self.timeline.now > closed[first.number] + 2 * self.scenario.timeout
        return late or all(other.number in closed for other in others)

    def verdict(self) -> Verdict:
        """Judge what has happened."""
        ledger = self.ensemble.ledger
        names = set(self.clients[0].lease.beliefs)
        if self.question.pipelined:
            names.discard("rule")  # the real lease refuses a second probe; it is not in this
        expired = [client for client in self.clients if client.number in ledger.decided]
        lost, left = self._gaps(expired=True), self._gaps(expired=False)
        return Verdict(
            seed=self.seed,
            slacks={
                name: min(
                    (
                        ledger.decided[client.number] - client.lease.beliefs[name].until()
                        for client in expired
                    ),
                    default=math.inf,
                )
                for name in sorted(names)
            },
            gap=min(lost, default=math.inf),
            handovers=len(lost),
            left=min(left, default=math.inf),
            expired=len(expired),
            leaders=ledger.leaders,
            probes=sum(client.lease.probes for client in self.clients),
            unheard=any(self._unheard(client) for client in expired),
            scenario=self.scenario,
        )

    def _unheard(self, client: Client) -> bool:
        """Whether a leader counted with a smaller timeout than the client knew of."""
        ledger, session = self.ensemble.ledger, client.number
        known = client.lease.least_timeout(ledger.decided[session])
        return ledger.least.get(session, math.inf) < known

    def _gaps(self, *, expired: bool) -> list[float]:
        """Compare leaderships with the next one of somebody else."""
        closed = self.ensemble.ledger.closed
        gaps = []
        for number, term in enumerate(self.office):
            later = (
                other for other in self.office[number + 1 :] if other.client is not term.client
            )
            heir = next(later, None)
            if heir is None:
                continue
            by_then = closed.get(term.client.number, math.inf) <= heir.granted
            if by_then is expired:
                gaps.append(heir.granted - term.until())
        return gaps


def judge(seed: int, question: Question) -> Verdict:
    """Run one history and say what came of it."""
    history = History(seed, question)
    history.run()
    return history.verdict()
