"""The faults: each breaks something for as long as its block lasts, and tells what.

A fault of the network is undone by ``heal`` for all of them at once, so faults that are
inflicted together end together.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from zkelect.testing.conversation import REPLIES, REQUESTS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from chaos.stage import Stage

__all__ = ["FAULTS", "SCRIPTED", "Fault"]

Fault: TypeAlias = "Callable[[Stage, random.Random], AbstractContextManager[str]]"
"""Inflicts a fault; the block gets whom it has struck."""

_LATENCY: Final = (0.02, 0.15)
_LOSS: Final = (0.05, 0.3)
_HELD_BACK: Final = 0.37


# --- the network between the servers ------------------------------------------------------


@contextmanager
def _isolated_follower(stage: Stage, dice: random.Random) -> Iterator[str]:
    with _cut_off(stage, dice, stage.server(dice, "follower")) as what:
        yield what


@contextmanager
def _isolated_ensemble_leader(stage: Stage, dice: random.Random) -> Iterator[str]:
    with _cut_off(stage, dice, stage.server(dice, "leader")) as what:
        yield what


@contextmanager
def _cut_off(stage: Stage, dice: random.Random, index: int) -> Iterator[str]:
    """From its peers alone, so that its clients do not notice; or from everybody."""
    others = [other for other in range(len(stage.ensemble.servers)) if other != index]
    if dice.random() < 0.5:
        stage.ensemble.isolate(index)
        what = f"server {index + 1} from everybody"
    else:
        stage.ensemble.partition([index], others)
        what = f"server {index + 1} from its peers"
    with _healing(stage):
        yield what


@contextmanager
def _one_way_drop(stage: Stage, dice: random.Random) -> Iterator[str]:
    """Between servers, or between the leader and all of them."""
    if dice.random() < 0.5:
        direction = dice.choice((REQUESTS, REPLIES))
        with _cut(stage, stage.leader, direction):
            yield f"{direction} of candidate {stage.leader + 1}"
        return
    index = stage.server(dice, dice.choice(("leader", "follower")))
    others = [other for other in range(len(stage.ensemble.servers)) if other != index]
    one, other = dice.choice((([index], others), (others, [index])))
    stage.ensemble.partition(one, other, one_way=True)
    with _healing(stage):
        yield f"servers {_numbers(one)} are not heard by {_numbers(other)}"


@contextmanager
def _latency(stage: Stage, dice: random.Random) -> Iterator[str]:
    index = stage.server(dice, dice.choice(("leader", "follower")))
    latency = dice.uniform(*_LATENCY)
    stage.slow(index, latency=latency)
    with _healing(stage):
        yield f"{latency * 1000:.0f} ms from server {index + 1}"


@contextmanager
def _loss(stage: Stage, dice: random.Random) -> Iterator[str]:
    index = stage.server(dice, dice.choice(("leader", "follower")))
    loss = dice.uniform(*_LOSS)
    stage.slow(index, loss=loss)
    with _healing(stage):
        yield f"{loss:.0%} from server {index + 1}"


@contextmanager
def _healing(stage: Stage) -> Iterator[None]:
    try:
        yield
    finally:
        stage.heal()


def _numbers(indices: list[int]) -> str:
    return " and ".join(str(index + 1) for index in indices)


# --- between the leader and the servers ---------------------------------------------------


@contextmanager
def _black_hole(stage: Stage, _: random.Random) -> Iterator[str]:
    leader = stage.leader
    with _cut(stage, leader, None):
        yield f"candidate {leader + 1}"


@contextmanager
def _deaf_server(stage: Stage, _: random.Random) -> Iterator[str]:
    """The leader's server answers pings and known reads, and has no quorum any more."""
    leader = stage.leader
    stage.proxies[leader].isolate()
    try:
        yield f"candidate {leader + 1}"
    finally:
        stage.proxies[leader].heal()


@contextmanager
def _acknowledged_late(stage: Stage, _: random.Random) -> Iterator[str]:
    """Hold the answer to a probe back, hand it over, and cut the leader off at that moment."""
    leader = stage.leader
    proxy = stage.proxies[leader]
    rule = proxy.delay_reply("multi")
    if rule.wait():
        time.sleep(_HELD_BACK)
    rule.release()
    time.sleep(_HELD_BACK / 10)  # for the answer to arrive; the next probe goes out later
    proxy.cut()
    try:
        yield f"candidate {leader + 1}"
    finally:
        proxy.heal()


@contextmanager
def _cut(stage: Stage, index: int, direction: object) -> Iterator[None]:
    proxy = stage.proxies[index]
    proxy.cut() if direction is None else proxy.cut(REQUESTS if direction == REQUESTS else REPLIES)
    try:
        yield
    finally:
        proxy.heal()


# --- processes ----------------------------------------------------------------------------


@contextmanager
def _stopped_leader(stage: Stage, _: random.Random) -> Iterator[str]:
    leader = stage.leader
    stage.candidates[leader].pause()
    try:
        yield f"candidate {leader + 1}"
    finally:
        stage.candidates[leader].resume()


@contextmanager
def _killed_leader(stage: Stage, _: random.Random) -> Iterator[str]:
    leader = stage.leader
    stage.candidates[leader].kill()
    yield f"candidate {leader + 1}"  # the stage revives who is dead


@contextmanager
def _stopped_server(stage: Stage, dice: random.Random) -> Iterator[str]:
    index = stage.server(dice, dice.choice(("leader", "follower")))
    server = stage.ensemble.servers[index]
    server.pause()
    try:
        yield f"server {index + 1}"
    finally:
        if server.paused:
            server.resume()


@contextmanager
def _killed_server(stage: Stage, dice: random.Random) -> Iterator[str]:
    index = stage.server(dice, dice.choice(("leader", "follower")))
    server = stage.ensemble.servers[index]
    server.kill()
    yield f"server {index + 1}"  # the stage revives who is dead


# --- stores -------------------------------------------------------------------------------


@contextmanager
def _cut_store(stage: Stage, dice: random.Random) -> Iterator[str]:
    """Of half of the stores; whether one is met in mid-transaction is up to the writers."""
    names = dice.sample(sorted(stage.stores), (len(stage.stores) + 1) // 2)
    with ExitStack() as disturbed:
        for name in names:
            disturbed.enter_context(stage.stores[name].disturb())
        yield ", ".join(names)
    for process in stage.candidates:
        process.resume()  # one may have been stopped inside its transaction


FAULTS: Final[Mapping[str, Fault]] = {
    "isolated follower": _isolated_follower,
    "isolated ensemble leader": _isolated_ensemble_leader,
    "one-way drop": _one_way_drop,
    "latency": _latency,
    "loss": _loss,
    "black hole": _black_hole,
    "deaf server": _deaf_server,
    "stopped leader": _stopped_leader,
    "killed leader": _killed_leader,
    "stopped server": _stopped_server,
    "killed server": _killed_server,
    "store cut in mid-transaction": _cut_store,
}
"""By the names in which the plan and the report speak of them."""

SCRIPTED: Final[Mapping[str, Fault]] = {**FAULTS, "acknowledged late": _acknowledged_late}
"""What a script can ask for, too: the moment that one of the controls needs."""
