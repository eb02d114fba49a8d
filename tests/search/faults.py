"""What can go wrong, each as one call: stalls, cuts, crashes, depositions.

Everything stays within what the rule allows for: links keep their order, and a ping
thread that is due gets its turn (see Server.stall). Else there is no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Final

from search.client import Client
from search.ensemble import LATENESS, VOTERS, Ensemble, Looking
from search.learning import Learning
from search.server import Down, Server
from search.timeline import Process

__all__ = ["Faults"]

_BETWEEN_STALLS: Final = 0.35
"""Seconds that a process which is not starved runs at least between two stalls by chance."""


class Faults:
    """What can be done to one ensemble, and to one client of it."""

    def __init__(self, ensemble: Ensemble, target: Client, chance: Random) -> None:
        self._ensemble = ensemble
        self._network = ensemble.network
        self._target = target
        self._chance = chance
        self._nature = Process(ensemble.timeline, -1)
        self._timeout = ensemble.scenario.timeout

    # --- when --------------------------------------------------------------------------------

    def at(self, instant: float, call: Callable[..., None], *args: object) -> None:
        """Do something at an instant."""
        self._ensemble.timeline.at(instant, self._nature, call, *args)

    def after(self, delay: float, call: Callable[..., None], *args: object) -> None:
        """Do something later."""
        self.at(self._ensemble.timeline.now + delay, call, *args)

    def part_of_timeout(self, least: float, most: float) -> float:
        """Draw a duration, given in session timeouts."""
        return self._chance.uniform(least, most) * self._timeout

    # --- who ---------------------------------------------------------------------------------

    def leader(self) -> Server:
        """Return the leader of the newest epoch, or some server when there is none."""
        return self._ensemble.newest() or self._ensemble.servers[0]

    def any_voter(self) -> Server:
        """Return a voter by chance."""
        return self._chance.choice(self._ensemble.servers[:VOTERS])

    def teacher(self, server: Server) -> Server:
        """Return whom a server learns from, unless that is the leader; then itself."""
        role = server.role
        if isinstance(role, Learning) and isinstance(role.above, Learning):
            return role.above.server
        return server

    # --- processes ---------------------------------------------------------------------------

    def stall_at_times(self, process: Process, longest: float, quiet: float) -> None:
        """Stall a process by chance, ``quiet`` seconds apart in the mean."""

        def stall() -> None:
            duration = self._chance.uniform(0, longest)
            process.stall(duration)
            pause = _BETWEEN_STALLS + self._chance.expovariate(1 / quiet)
            self.after(duration + pause, stall)

        self.after(self._chance.uniform(0, quiet), stall)

    def starve(self, server: Server) -> None:
        """Let it run in turns of a few milliseconds for a while, again and again."""

        def run_a_turn(left: int) -> None:
            duration = self._chance.uniform(0.05, self._chance.choice((0.3, 1.0, 3.0)))
            server.stall(duration)
            pause = self._chance.uniform(0.001, 0.15)
            if not left:
                left = self._chance.randint(2, 8)
                pause = self._chance.expovariate(1 / (2 * self._timeout))
            self.after(duration + pause, run_a_turn, left - 1)

        self.after(self._chance.uniform(0, self._timeout), run_a_turn, 5)

    def torment(self, server: Server) -> None:
        """Stop it again before its ping thread has had its turn, a few times."""
        wake = server.asleep_until
        for _ in range(self._chance.choice((0, 2, 4))):
            wake += LATENESS / 5
            duration = self._chance.uniform(0.05, 0.5)
            self.at(wake, server.stall, duration)
            wake += duration

    def crash(self, victim: Server, duration: float) -> None:
        """Stop a server with all it has in memory; its log is on disk."""
        if isinstance(victim.role, Down):
            return
        told = self._chance.random() < 0.7
        victim.become(Down(victim, refuses=told), silently=not told)
        if duration < math.inf:
            self.after(duration, self._restart, victim)

    def _restart(self, victim: Server) -> None:
        if isinstance(victim.role, Down):
            victim.become(Looking(victim))

    # --- the network between servers ---------------------------------------------------------

    def isolate(self, victim: Server, duration: float) -> None:
        """Part one server from the others, though not from its clients."""
        for other in self._others(victim):
            self._network.hold(other, victim, duration)
            self._network.hold(victim, other, duration)

    def isolate_one_way(self, victim: Server, duration: float) -> None:
        """Let a server hear the others, and not be heard; or the other way round."""
        heard = self._chance.random() < 0.5
        for other in self._others(victim):
            if heard:
                self._network.hold(other, victim, duration)
            else:
                self._network.hold(victim, other, duration)

    def depose(self, victim: Server, duration: float) -> None:
        """Part it from its learners, and let them look for another leader at once."""
        self.isolate(victim, duration)
        for other in self._others(victim):
            role = other.role
            if isinstance(role, Learning) and role.above.server is victim:
                soon = self._ensemble.timeline.now + self._chance.uniform(0, 0.3)
                self._ensemble.timeline.at(soon, other, self._give_up, role)

    def cut(self, one: Process, other: Process, duration: float) -> None:
        """Cut the way between two processes, in one direction or both."""
        there, back = self._chance.choice(((True, True), (True, False), (False, True)))
        if there:
            self._network.hold(one, other, duration)
        if back:
            self._network.hold(other, one, duration)

    def snap(self, victim: Server) -> None:
        """Let a learner die together with everything that is under way from it."""
        role = victim.role
        if isinstance(role, Learning):
            role.above.drop(victim)
            self.isolate(victim, math.inf)

    def _others(self, server: Server) -> list[Server]:
        return [other for other in self._ensemble.servers if other is not server]

    def _give_up(self, role: Learning) -> None:
        if role.current:
            self._ensemble.look(role.server)

    # --- the target --------------------------------------------------------------------------

    def leave_only(self, refuge: Server) -> None:
        """Let the target reach one server at most, which it tries next."""
        self._target.link.next = refuge
        for server in self._others(refuge):
            self._network.hold(self._target, server, math.inf)

    def silence(self, server: Server) -> None:
        """Let a server hear nothing more of the target."""
        self._network.hold(self._target, server, math.inf)

    def deafen(self, server: Server) -> None:
        """Let the target be heard when it connects anew, and hear nothing, then not even that."""
        self._network.hold(server, self._target, math.inf)
        self._target.link.shut()
        self.after(self.part_of_timeout(0.05, 0.5), self.silence, server)
