"""Three voters and an observer; how they find a leader, and what is true of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from search.leading import Leading
from search.learning import Learning
from search.log import Ledger, Tree
from search.network import Network
from search.scenario import Scenario
from search.server import Role, Server
from search.serving import Serving
from search.timeline import Timeline

__all__ = ["LATENESS", "VOTERS", "Ensemble", "Looking"]

VOTERS: Final = 3
LATENESS: Final = 0.1
"""J, as the world keeps it: seconds by which a ping thread may be late. Not the library's
constant, so that a rule that trusts in less is found out."""


class Ensemble:
    """The servers, their network, and the ledger of what a majority has.

    :ivar ambush: asked whenever a ping falls due; whether it has stopped the server now.
    :ivar pinging: told of each ping before it is sent.
    """

    def __init__(self, timeline: Timeline, chance: Random, scenario: Scenario) -> None:
        self.timeline = timeline
        self.chance = chance
        self.scenario = scenario
        self.network = Network(timeline, chance, scenario.weather)
        self.ledger = Ledger()
        self.ambush: Callable[[Serving], bool] = lambda _: False
        self.pinging: Callable[[Serving], None] = lambda _: None
        self.servers = [
            Server(self, number, scenario.rates[number], scenario.grants[number])
            for number in range(VOTERS + 1)
        ]

    # --- the beginning -----------------------------------------------------------------------

    def open(self, sessions: dict[int, float]) -> None:
        """Begin with a leader, and sessions that have just been heard of."""
        for server in self.servers:
            server.tree = Tree(sessions)
        first = self.chance.choice(self.voters)
        self.install(first)
        for server in self.servers:
            if server is not first:
                self.join(server, self._teachers(server)[0])

    # --- who is what -------------------------------------------------------------------------

    @property
    def tick(self) -> float:
        """The tickTime of all servers, seconds."""
        return self.scenario.tick

    @property
    def sync_limit(self) -> float:
        """Seconds of silence after which leader and learner give each other up."""
        return self.scenario.sync_limit

    @property
    def voters(self) -> list[Server]:
        """The servers that make majorities."""
        return self.servers[:VOTERS]

    def votes(self, server: object) -> bool:
        """Whether a server is a voter."""
        return server is not self.servers[VOTERS]

    def is_observer_master(self, server: Server) -> bool:
        """Whether an observer may learn from this server when it follows."""
        return self.scenario.observer_master and self.votes(server)

    def leaders(self) -> Iterator[Leading]:
        """Yield those who think that they lead."""
        for server in self.voters:
            if isinstance(server.role, Leading):
                yield server.role

    def newest(self) -> Server | None:
        """Return the leader of the highest epoch."""
        leading = [role.server for role in self.leaders()]
        return max(leading, key=lambda server: server.epoch, default=None)

    def falls_due(self, role: Serving) -> bool:
        """Tell the adversary that a ping falls due; whether the server sleeps now."""
        return self.ambush(role)

    def lateness(self) -> float:
        """Return how long the ping thread waits for its turn, up to J."""
        return self.chance.choice((0.0, self.chance.uniform(0, LATENESS), LATENESS))

    # --- changes -----------------------------------------------------------------------------

    def look(self, server: Server) -> None:
        """Let a server look for a leader."""
        server.become(Looking(server))

    def install(self, server: Server) -> None:
        """Make a server the leader of a new epoch: everything in its log is decided now."""
        self.ledger.leaders += 1
        server.epoch = self.ledger.leaders
        server.become(Leading(server))

    def join(self, server: Server, above: Serving) -> None:
        """Let a server learn from another; it is taken to be in step at once."""
        teacher = above.server
        link = self.network.open(server, teacher)
        server.epoch = teacher.epoch
        server.committed, server.tree = teacher.committed, teacher.tree
        server.log = teacher.log[: None if self.votes(server) else teacher.committed]
        learner = Learning(server, above, link)
        server.become(learner)
        above.learners[link] = learner
        if isinstance(above, Leading):
            above.heard[link] = self.timeline.now
        if self.votes(server) and len(server.log) > server.committed:
            link.tell(server, above.acknowledged, link, len(server.log))

    def find(self, server: Server) -> bool:
        """Let a server that looks find a leader, or be one; whether it did."""
        teachers = self._teachers(server)
        if teachers:
            self.join(server, self.chance.choice(teachers))
            return True
        return self.votes(server) and self._elect(server)

    def _teachers(self, server: Server) -> list[Serving]:
        """Whom it can learn from: a voter only from the leader of the newest epoch."""
        teachers: list[Serving]
        if self.votes(server):
            newest = self.newest()
            teachers = [role for role in self.leaders() if role.server is newest]
        elif self.scenario.observer_master:
            teachers = [s.role for s in self.voters if isinstance(s.role, Learning)]
        else:
            teachers = list(self.leaders())
        return [
            role
            for role in teachers
            if role.server.epoch >= server.epoch and self._meet(server, role.server)
        ]

    def _elect(self, server: Server) -> bool:
        """Two voters that look are a majority; the one with the newer log leads."""
        others = [
            other
            for other in self.voters
            if other is not server and isinstance(other.role, Looking) and self._meet(server, other)
        ]
        if not others:
            return False
        other = self.chance.choice(others)
        leader = max((server, other), key=lambda one: (one.epoch, len(one.log)))
        follower = other if leader is server else server
        self.install(leader)
        assert isinstance(leader.role, Leading)
        self.join(follower, leader.role)
        return True

    def _meet(self, one: Server, other: Server) -> bool:
        return other.awake and self.network.reaches(one, other)


class Looking(Role):
    """A server without a leader; it takes no clients and tries now and then to find one."""

    def begin(self) -> None:
        self._wait(0.05, 0.5)

    def _wait(self, least: float, most: float) -> None:
        again = self.timeline.now + self.ensemble.chance.uniform(least, most)
        self.timeline.at(again, self.server, self._try)

    def _try(self) -> None:
        if self.current and not self.ensemble.find(self.server):
            self._wait(0.2, 0.6)
