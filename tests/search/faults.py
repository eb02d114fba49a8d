"""What goes wrong: stalls and cuts by chance, and an adversary that waits for its moment.

By chance alone the worst moments are rare: a learner must die between an answer and the
next ping, or the leader be stopped just as a ping falls due. So the adversary sees
everything, and acts within what the rule allows: no clock beyond its rate, no ping thread
later than J, links in order. Everything else, for as long as it likes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Final

from search.client import Client
from search.ensemble import VOTERS, Ensemble, Looking
from search.leading import Leading
from search.learning import Learning
from search.server import Down, Server
from search.serving import Serving
from search.timeline import Process
from zkelect.core.lease import SLACK, pace_of, patience_of

__all__ = ["Adversary"]

_FIRST_STALL: Final = 0.35
"""Seconds that a process which is not starved runs between two stalls by chance."""


class Adversary:
    """Faults of one history, aimed at one client.

    :ivar struck: whether the last blow has fallen: from then on the client reaches one
        server at most, so that its session expires.
    """

    def __init__(self, ensemble: Ensemble, target: Client, chance: Random) -> None:
        self.struck = False
        self._ensemble = ensemble
        self._target = target
        self._chance = chance
        self._nature = Process(ensemble.timeline, -1)
        self._timeout = ensemble.scenario.timeout
        self._lies_in_wait = False
        self._aim: str | None = None
        self._worst = 0.0
        self._ambushed: Server | None = None
        self._ambushed_until = -math.inf

    def begin(self, *, cunning: bool, subtle: str) -> None:
        """Plan the history.

        :param cunning: strike at a moment of one's choice, not at a given time.
        :param subtle: the rule that is the hardest to break.
        """
        scenario, uniform = self._ensemble.scenario, self._chance.uniform
        for _ in range(scenario.disturbances):
            self._at(uniform(0.3 * self._timeout, scenario.strike), self._disturb)
        self._at(scenario.strike, self._lie_in_wait if cunning else self._strike)
        patience = 5.0 if scenario.aims else 1.5
        self._at(scenario.strike + patience * self._timeout, self._strike)
        for server in self._ensemble.servers:
            turns = scenario.starved and self._chance.random() < 0.5
            self._starve(server) if turns else self._stall_server(server)
        self._ensemble.ambush = self._ambush
        self._ensemble.pinging = self._squeeze
        self._target.saw = self._see
        self._target.proved = self._weigh
        if scenario.aims:
            self._aim = self._chance.choice((*[subtle] * 4, *self._target.lease.beliefs))

    def stall_client(self, client: Client) -> None:
        """Let a client stall now and then."""
        longest = self._chance.choice((0.05, 0.5, self._timeout / 2))
        self._stall(client, longest, self._chance.choice((1, 5)) * self._timeout)

    # --- stalls ------------------------------------------------------------------------------

    def _stall_server(self, server: Server) -> None:
        scenario = self._ensemble.scenario
        self._stall(server, scenario.stall, scenario.quiet)

    def _stall(self, process: Process, longest: float, quiet: float) -> None:
        """Stall by chance, again and again."""

        def stall() -> None:
            duration = self._chance.uniform(0, longest)
            process.stall(duration)
            pause = _FIRST_STALL + self._chance.expovariate(1 / quiet)
            self._after(duration + pause, stall)

        self._after(self._chance.uniform(0, quiet), stall)

    def _starve(self, server: Server) -> None:
        """Let it run in turns of a few milliseconds for a while, again and again."""

        def starve(turns: int) -> None:
            duration = self._chance.uniform(0.05, self._chance.choice((0.3, 1.0, 3.0)))
            server.stall(duration)
            pause = self._chance.uniform(0.001, 0.15)
            if not turns:
                turns = self._chance.randint(2, 8)
                pause = self._chance.expovariate(1 / (2 * self._timeout))
            self._after(duration + pause, lambda: starve(turns - 1))

        self._after(self._chance.uniform(0, self._timeout), lambda: starve(5))

    def _ambush(self, role: Serving) -> bool:
        """Stop a server as its ping falls due; then it commits first, and pings afterwards."""
        server, scenario = role.server, self._ensemble.scenario
        if self._aim is None and self._lies_in_wait and self._chance.random() < scenario.haste:
            self._strike()
        if self._chance.random() >= scenario.cunning:
            return False
        bearable = patience_of(self._timeout)  # longer, and the client tries another server
        longest = self._chance.choice((0.3, bearable, bearable, 4 * bearable))
        server.stall(self._chance.uniform(0.05, longest))
        self._ambushed_until = server.asleep_until + 2.0
        self._ambushed = server
        if scenario.starved:
            self._torment(server)
        return True

    def _torment(self, server: Server) -> None:
        """Stop it again before its ping thread has had its turn, a few times."""
        wake = server.asleep_until
        for _ in range(self._chance.choice((0, 2, 4))):
            wake += SLACK / 5
            duration = self._chance.uniform(0.05, 0.5)
            self._at(wake, server.stall, duration)
            wake += duration

    def _squeeze(self, role: Serving) -> None:
        """Hold a late ping back from the target's server, then what that answers.

        Requests go up meanwhile, and are committed with another voter; the answers to
        them wait behind the ping.
        """
        server, learner = role.server, self._target.link.server
        if server is not self._ambushed or server is learner:
            return
        self._ambushed = None
        duration = self._chance.uniform(0.1, 2 * pace_of(self._timeout) + 0.3)
        self._ambushed_until = self._ensemble.timeline.now + duration + 0.3
        self._ensemble.network.hold(server, learner, duration)
        self._after(duration - 1e-6, self._ensemble.network.hold, learner, server, 2.0)

    # --- blows -------------------------------------------------------------------------------

    def _lie_in_wait(self) -> None:
        self._lies_in_wait = True

    def _see(self, client: Client) -> None:
        """Decide whether this answer is the moment."""
        if self._aim is None and self._lies_in_wait and self._chance.random() < self._eagerness():
            self._strike()

    def _weigh(self, client: Client) -> None:
        """Strike when the rule aimed at promises more than the ensemble leader knows of."""
        leader = self._leader().role
        if self._aim is None or not self._lies_in_wait or not isinstance(leader, Leading):
            return
        margin = leader.expiry(client.number) - client.lease.promise(self._aim)
        if margin < self._worst:
            self._worst = margin
            if self._chance.random() < 0.5:
                self._strike()

    def _eagerness(self) -> float:
        if self._ensemble.scenario.cunning:
            return 0.5 if self._ensemble.timeline.now < self._ambushed_until else 0.02
        return self._ensemble.scenario.haste

    def _disturb(self) -> None:
        """A fault that passes."""
        duration = self._chance.choice((self._draw(0.01, 0.5), self._draw(0.5, 3.0)))
        self._chance.choice(self._faults())(duration)

    def _strike(self) -> None:
        """The last blow: from now on the target reaches one server at most."""
        if self.struck:
            return
        self.struck = True
        if self._ensemble.scenario.trap:
            self._depose(self._leader())
        elif self._worst < 0:
            self._silence(self._target.link.server)
        else:
            self._hurt(self._target.link.server)

    def _depose(self, leader: Server) -> None:
        """Let the others elect a new leader at once, and the target find only the old one."""
        self._isolate(leader, math.inf, noticed=True)
        self._leave_only(leader)
        self._target.link.shut()

    def _silence(self, server: Server) -> None:
        """Let nothing of what is on its way up arrive, and leave all else as it is."""
        for one in self._ensemble.servers:
            self._ensemble.network.hold(self._target, one, math.inf)
        self._snap(server)
        self._snap(self._teacher(server))

    def _hurt(self, server: Server) -> None:
        """Do the target's server some harm, and silence the target after a while."""
        self._leave_only(server)
        silence = self._chance.choice((0.0, self._draw(0, 0.3), self._draw(0, 1.5)))
        self._after(silence, self._ensemble.network.hold, self._target, server, math.inf)
        if self._chance.random() < 0.6:
            self._snap(self._chance.choice((server, self._teacher(server))))
        if self._chance.random() < 0.6:
            self._chance.choice(self._faults())(math.inf)
            self._after(self._draw(0, 2), self._follow_up)

    def _leave_only(self, refuge: Server) -> None:
        self._target.link.next = refuge
        for server in self._ensemble.servers:
            if server is not refuge:
                self._ensemble.network.hold(self._target, server, math.inf)

    def _follow_up(self) -> None:
        victim = self._chance.choice((self._leader(), self._chance.choice(self._voters)))
        blow = self._chance.choice((self._crash, self._isolate, lambda *_: None))
        blow(victim, self._draw(0.05, 2))

    def _faults(self) -> tuple[Callable[[float], None], ...]:
        """Return what can be done to the server that matters most."""
        mine = self._target.link.server
        victim = self._chance.choice(
            (self._leader(), mine, mine, self._chance.choice(self._voters))
        )
        return (
            lambda duration: self._isolate(victim, duration),
            lambda duration: self._isolate(victim, duration),
            lambda duration: self._isolate(victim, duration, noticed=True),
            lambda duration: self._isolate(victim, duration, ways=1),
            lambda duration: self._crash(victim, duration),
            lambda duration: self._cut(self._target, mine, duration),
            lambda duration: self._cut(mine, self._leader(), duration),
            lambda _: self._target.link.shut(),
            lambda _: self._deafen(mine),
            lambda _: None,
        )

    def _isolate(
        self, victim: Server, duration: float, *, noticed: bool = False, ways: int = 2
    ) -> None:
        """Part one server from the others, though not from its clients."""
        inwards = self._chance.random() < 0.5
        for other in self._ensemble.servers:
            if other is victim:
                continue
            if ways == 2 or inwards:
                self._ensemble.network.hold(other, victim, duration)
            if ways == 2 or not inwards:
                self._ensemble.network.hold(victim, other, duration)
            role = other.role
            if noticed and isinstance(role, Learning) and role.above.server is victim:
                self._at_server(other, self._give_up, role)

    def _give_up(self, role: Learning) -> None:
        """A learner's connection breaks, and it looks for another leader at once."""
        if role.current:
            self._ensemble.look(role.server)

    def _crash(self, victim: Server, duration: float) -> None:
        """Stop a server with all it has in memory; its log is on disk."""
        if isinstance(victim.role, Down):
            return
        told = self._chance.random() < 0.7
        victim.become(Down(victim, refuses=told), silently=not told)
        if duration < math.inf:
            self._after(duration, self._restart, victim)

    def _restart(self, victim: Server) -> None:
        if isinstance(victim.role, Down):
            victim.become(Looking(victim))

    def _cut(self, one: Process, other: Process, duration: float) -> None:
        """Cut the way between two processes, in one direction or both."""
        there, back = self._chance.choice(((True, True), (True, False), (False, True)))
        if there:
            self._ensemble.network.hold(one, other, duration)
        if back:
            self._ensemble.network.hold(other, one, duration)

    def _deafen(self, server: Server) -> None:
        """Let the target be heard when it connects anew, and hear nothing, then not even that."""
        network = self._ensemble.network
        network.hold(server, self._target, math.inf)
        self._target.link.shut()
        later = self._draw(0.05, 0.5)
        self._after(later, network.hold, self._target, server, math.inf)

    def _snap(self, victim: Server) -> None:
        """A learner dies together with everything that is under way from it."""
        role = victim.role
        if isinstance(role, Learning):
            role.above.drop(victim)
            self._isolate(victim, math.inf)

    # --- within ------------------------------------------------------------------------------

    @property
    def _voters(self) -> list[Server]:
        return self._ensemble.servers[:VOTERS]

    def _leader(self) -> Server:
        return self._ensemble.newest() or self._ensemble.servers[0]

    def _teacher(self, server: Server) -> Server:
        """Return whom a server learns from, unless that is the leader; then itself."""
        role = server.role
        if isinstance(role, Learning) and isinstance(role.above, Learning):
            return role.above.server
        return server

    def _draw(self, least: float, most: float) -> float:
        return self._chance.uniform(least, most) * self._timeout

    def _at(self, instant: float, call: Callable[..., None], *args: object) -> None:
        self._ensemble.timeline.at(instant, self._nature, call, *args)

    def _after(self, delay: float, call: Callable[..., None], *args: object) -> None:
        self._at(self._ensemble.timeline.now + delay, call, *args)

    def _at_server(self, server: Server, call: Callable[..., None], *args: object) -> None:
        soon = self._ensemble.timeline.now + self._chance.uniform(0, 0.3)
        self._ensemble.timeline.at(soon, server, call, *args)
