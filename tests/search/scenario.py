"""One history's conditions, drawn from its seed."""

from __future__ import annotations

from random import Random
from typing import Final

import attrs

from search.network import Weather

__all__ = ["Question", "Scenario", "draw"]

_TIMEOUTS: Final = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 10.0, 20.0, 20.0)


@attrs.frozen(kw_only=True)
class Question:
    """What a search is about; each number can be given on the command line.

    :ivar rate: clocks of servers and clients are up to so far from true rate; 0.01 is
        what the rule allows.
    :ivar observer_master: 1: the observer learns from a follower; counted with two hops.
    :ivar starved: 1: processes run in short turns, and the leader's ping thread may need
        several of them; counted with two hops.
    :ivar unequal: 1: each server grants the whole timeout, or half of it.
    :ivar pipelined: 1: the client sends probes without waiting for answers.
    :ivar adversary: 0: faults come by chance only.
    """

    rate: float = 0.01
    observer_master: int = 0
    starved: int = 0
    unequal: int = 0
    pipelined: int = 0
    adversary: int = 1

    @property
    def hops(self) -> int:
        """How many hops the rule under test has to count with."""
        return 2 if self.observer_master or self.starved else 1


@attrs.frozen(kw_only=True)
class Scenario:
    """What one history is like.

    :ivar timeout: session timeout that the servers grant; ``created`` is what the session
        was created with, before the history begins.
    :ivar told_tick: what the client was told of the servers' tick, None when nothing.
    :ivar stall: the longest stall of a server; ``quiet`` the mean time between two.
    :ivar handing: the longest time from an answer's arrival until the library hears of it.
    :ivar home: the one server that the first client knows, None when it knows all.
    :ivar cunning: chance that the ensemble leader is stopped just as its ping falls due.
    :ivar haste: chance that the adversary takes an answer, or a ping, for its moment.
    :ivar aims: whether it waits for one rule to promise too much.
    :ivar trap: whether the last blow deposes a leader and sends the client to it.
    :ivar strike: the instant from which the adversary looks for the worst moment.
    """

    timeout: float
    created: float
    grants: tuple[float, ...]
    tick: float
    told_tick: float | None
    sync_limit: float
    weather: Weather
    rates: tuple[float, ...]
    rounds: bool
    starved: bool
    observer_master: bool
    stall: float
    quiet: float
    handing: float
    home: int | None
    heir: bool
    resigns: bool
    cunning: float
    haste: float
    aims: bool
    trap: bool
    disturbances: int
    strike: float
    horizon: float


def draw(chance: Random, question: Question) -> Scenario:
    """Draw a scenario within the assumptions of the rule, but for what is in question."""
    pick, uniform = chance.choice, chance.uniform
    timeout = pick(_TIMEOUTS)
    created = pick((timeout, timeout, timeout, timeout / 2))
    least = timeout / 2 if question.unequal else created
    # minSessionTimeout is at least two ticks, whatever the session was granted.
    ticks_of = (timeout / 2,) if question.observer_master else (0.2, 0.5, 1.0, 2.0)
    tick = min(pick((*ticks_of, timeout / 4, timeout / 2)), least / 2)
    ticks = pick((2, 3, 5))
    strike = uniform(1.2, 3.5) * timeout
    half = bool(question.unequal)
    trap = bool(question.adversary) and chance.random() < 0.15
    aims = bool(question.adversary) and not trap and chance.random() < 0.6
    cunning = pick((0.05, 0.1, 0.2) if aims else (0.0, 0.1, 0.3))
    return Scenario(
        timeout=timeout,
        created=created,
        grants=tuple(pick((timeout, timeout / 2)) if half else timeout for _ in range(4)),
        tick=tick,
        told_tick=pick((tick, tick, None)),
        sync_limit=ticks * tick,
        weather=_draw_weather(chance, timeout),
        rates=tuple(1 + _drift(chance, question.rate) for _ in range(6)),
        rounds=pick((False, False, True)),
        starved=bool(question.starved),
        observer_master=bool(question.observer_master),
        stall=pick((0.1, timeout / 3, timeout * 0.9)),
        quiet=pick((1, 3, 30)) * timeout,
        handing=timeout / 4 if trap else pick((0.0, 0.0, 0.02, 0.4)),
        home=pick((None, 3)) if question.observer_master else pick((None, None, None, 1)),
        heir=pick((False, False, True)),
        resigns=pick((False, False, True)),
        cunning=cunning if question.adversary else 0.0,
        haste=pick((0.02, 0.2)),
        aims=aims,
        trap=trap,
        disturbances=0 if aims else pick((0, 0, 1, 2, 3)),
        strike=strike,
        horizon=strike + (8 if aims else 5) * timeout + 4 * ticks * tick,
    )


def _draw_weather(chance: Random, timeout: float) -> Weather:
    return Weather(
        latency=chance.choice((0.0005, 0.0005, 0.005, min(0.05, timeout / 60), timeout / 60)),
        spike=chance.choice((0.5, timeout / 2, timeout)),
        spike_chance=chance.choice((0.0, 0.0, 0.0, 0.02, 0.1)),
    )


def _drift(chance: Random, most: float) -> float:
    """Clocks are anywhere in the range, or at its ends, where bounds are tight."""
    return chance.choice((-most, most, chance.uniform(-most, most)))
