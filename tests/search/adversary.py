"""An adversary that sees everything, and waits for its moment.

By chance alone the worst moments are rare: a learner must die between an answer and the
next ping, or the leader be stopped just as a ping falls due. So this one stops leaders
right then, holds back the ping that follows, and strikes at an answer; or it weighs what
one rule promises against what the ensemble leader knows, and strikes when that is more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from search.client import Client
from search.ensemble import Ensemble
from search.faults import Faults
from search.leading import Leading
from search.server import Server
from search.serving import Serving
from zkelect.core.lease import pace_of, patience_of

__all__ = ["Adversary"]


class Adversary:
    """The faults of one history, aimed at one client.

    :ivar struck: whether the last blow has fallen: from then on the client reaches one
        server at most, so that its session expires.
    """

    def __init__(self, ensemble: Ensemble, target: Client, chance: Random) -> None:
        self.struck = False
        self._ensemble = ensemble
        self._scenario = ensemble.scenario
        self._target = target
        self._chance = chance
        self._faults = Faults(ensemble, target, chance)
        self._lies_in_wait = False
        self._aim: str | None = None
        self._worst = 0.0
        self._ambushed: Server | None = None
        self._ambushed_until = -math.inf

    # --- the plan ----------------------------------------------------------------------------

    def begin(self, *, cunning: bool, subtle: str) -> None:
        """Plan the history.

        :param cunning: strike at a moment of one's choice, not at a given time.
        :param subtle: the rule that is the hardest to break.
        """
        scenario, timeout = self._scenario, self._scenario.timeout
        for _ in range(scenario.disturbances):
            instant = self._chance.uniform(0.3 * timeout, scenario.strike)
            self._faults.at(instant, self._disturb)
        self._faults.at(scenario.strike, self._lie_in_wait if cunning else self._strike)
        patience = 5.0 if scenario.aims else 1.5
        self._faults.at(scenario.strike + patience * timeout, self._strike)
        for server in self._ensemble.servers:
            self._trouble(server)
        self._ensemble.ambush = self._ambush
        self._ensemble.pinging = self._squeeze
        self._target.saw = self._see
        self._target.proved = self._weigh
        if scenario.aims:
            self._aim = self._chance.choice((*[subtle] * 4, *self._target.lease.beliefs))

    def trouble_client(self, client: Client) -> None:
        """Let a client stall now and then."""
        timeout = self._scenario.timeout
        longest = self._chance.choice((0.05, 0.5, timeout / 2))
        self._faults.stall_at_times(client, longest, self._chance.choice((1, 5)) * timeout)

    def _trouble(self, server: Server) -> None:
        if self._scenario.starved and self._chance.random() < 0.5:
            self._faults.starve(server)
        else:
            self._faults.stall_at_times(server, self._scenario.stall, self._scenario.quiet)

    def _lie_in_wait(self) -> None:
        """Begin to watch; often with a new connection, whose first answer proves the most."""
        self._lies_in_wait = True
        if self._chance.random() < 0.4:
            self._target.link.shut()

    # --- ambushes ----------------------------------------------------------------------------

    def _ambush(self, role: Serving) -> bool:
        """Stop a server as its ping falls due; then it commits first, and pings afterwards."""
        server = role.server
        if self._hasty and self._chance.random() < self._scenario.haste:
            self._strike()
        if self._chance.random() >= self._scenario.cunning:
            return False
        bearable = patience_of(self._scenario.timeout)  # longer, and the client goes elsewhere
        unbearable = bearable if self._scenario.aims else 4 * bearable
        longest = self._chance.choice((0.3, bearable, bearable, unbearable))
        server.stall(self._chance.uniform(0.05, longest))
        self._ambushed, self._ambushed_until = server, server.asleep_until + 2.0
        if self._scenario.starved:
            self._faults.torment(server)
        return True

    def _squeeze(self, role: Serving) -> None:
        """Hold a late ping back from the target's server, then what that answers.

        Requests go up meanwhile, and are committed with another voter; the answers to
        them wait behind the ping.
        """
        server, learner = role.server, self._target.link.server
        if server is not self._ambushed or server is learner:
            return
        network = self._ensemble.network
        duration = self._chance.uniform(0.1, 2 * pace_of(self._scenario.timeout) + 0.3)
        self._ambushed = None
        self._ambushed_until = self._ensemble.timeline.now + duration + 0.3
        network.hold(server, learner, duration)
        self._faults.after(duration - 1e-6, network.hold, learner, server, 2.0)

    # --- the moment --------------------------------------------------------------------------

    @property
    def _hasty(self) -> bool:
        return self._lies_in_wait and self._aim is None

    def _see(self, client: Client) -> None:
        """Decide whether this answer is the moment."""
        if self._hasty and self._chance.random() < self._eagerness():
            self._strike()

    def _eagerness(self) -> float:
        if self._scenario.cunning:
            return 0.5 if self._ensemble.timeline.now < self._ambushed_until else 0.02
        return self._scenario.haste

    def _weigh(self, client: Client) -> None:
        """Strike when the rule aimed at promises more than the ensemble leader knows of."""
        leader = self._faults.leader().role
        if self._aim is None or not self._lies_in_wait or not isinstance(leader, Leading):
            return
        margin = leader.expiry(client.number) - client.lease.promise(self._aim)
        if margin < self._worst:
            self._worst = margin
            if self._chance.random() < 0.8:
                self._strike()

    # --- blows -------------------------------------------------------------------------------

    def _disturb(self) -> None:
        """A fault that passes."""
        part = self._faults.part_of_timeout
        self._chance.choice(self._choices())(self._chance.choice((part(0.01, 0.5), part(0.5, 3.0))))

    def _choices(self) -> tuple[Callable[[float], None], ...]:
        """Return what can be done, with a duration, to the servers that matter most."""
        faults, mine, leader = self._faults, self._target.link.server, self._faults.leader()
        victim = self._chance.choice((leader, mine, mine, faults.any_voter()))
        return (
            lambda duration: faults.isolate(victim, duration),
            lambda duration: faults.isolate(victim, duration),
            lambda duration: faults.isolate_one_way(victim, duration),
            lambda duration: faults.depose(victim, duration),
            lambda duration: faults.crash(victim, duration),
            lambda duration: faults.cut(self._target, mine, duration),
            lambda duration: faults.cut(mine, leader, duration),
            lambda _: self._target.link.shut(),
            lambda _: faults.deafen(mine),
            lambda _: None,
        )

    def _strike(self) -> None:
        """The last blow: from now on the target reaches one server at most."""
        if self.struck:
            return
        self.struck = True
        server = self._target.link.server
        if self._scenario.trap:
            self._spring(self._faults.leader())
        elif self._worst < 0:
            self._bury(server)
        elif (other := self._shorter_than(server)) is not None:
            self._mislead(other)
        else:
            self._hurt(server)

    def _spring(self, leader: Server) -> None:
        """Let the others elect a new leader at once, and the target find only the old one."""
        self._faults.depose(leader, math.inf)
        self._faults.leave_only(leader)
        self._target.link.shut()

    def _bury(self, server: Server) -> None:
        """Let nothing of what is on its way up arrive, and leave all else as it is."""
        self._faults.leave_only(server)
        self._faults.silence(server)
        self._faults.snap(server)
        self._faults.snap(self._faults.teacher(server))

    def _shorter_than(self, server: Server) -> Server | None:
        """Return a server that grants less, now and then."""
        shorter = [other for other in self._ensemble.servers if other.grants < server.grants]
        return shorter[0] if shorter and self._chance.random() < 0.5 else None

    def _mislead(self, server: Server) -> None:
        """Let the target resume its session where less is granted, and never hear of it."""
        self._faults.leave_only(server)
        self._faults.deafen(server)

    def _hurt(self, server: Server) -> None:
        """Do the target's server some harm, and silence the target after a while."""
        faults, part = self._faults, self._faults.part_of_timeout
        faults.leave_only(server)
        faults.after(self._chance.choice((0.0, part(0, 0.3), part(0, 1.5))), faults.silence, server)
        if self._chance.random() < 0.6:
            faults.snap(self._chance.choice((server, faults.teacher(server))))
        if self._chance.random() < 0.6:
            self._chance.choice(self._choices())(math.inf)
            faults.after(part(0, 2), self._follow_up)

    def _follow_up(self) -> None:
        victim = self._chance.choice((self._faults.leader(), self._faults.any_voter()))
        duration = self._faults.part_of_timeout(0.05, 2)
        blow = self._chance.choice((self._faults.crash, self._faults.isolate, None))
        if blow is not None:
            blow(victim, duration)
