"""Two hundred elections and three workers on a real server."""

from __future__ import annotations

import math
import threading
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest
from election.crew import Worker
from election.waiting import until

import zkelect
from zkelect.core.spread import weigh

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from conftest import Operator

    from zkelect.testing import LocalEnsemble

NAMES: Final = [f"shard-{number:03}" for number in range(200)]


@pytest.fixture
def hire(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Worker]]:
    """Let a worker stand for all; it leaves when the test ends."""
    with ExitStack() as stack:

        def begin(name: str, **options: object) -> Worker:
            worker = stack.enter_context(Worker(zookeeper.hosts, path, name, **options))
            return worker.add(NAMES)

        yield begin


@pytest.fixture
def tokens_rise(operator: Operator, path: str) -> Iterator[None]:
    """In every election, over all that has happened in the test."""
    yield
    for name in NAMES:
        tokens = [zkelect.Token.parse(term["token"]) for term in operator.terms(f"{path}/{name}")]
        assert tokens
        assert tokens == sorted(set(tokens))


def led(workers: Collection[Worker]) -> set[str]:
    return {name for worker in workers for name in worker.led}


def belongs(name: str, workers: Collection[Worker]) -> Worker:
    return max(workers, key=lambda worker: weigh(worker.name, name))


def wait_until_spread(workers: Collection[Worker]) -> None:
    """Each election moves after one or two slow re-reads: wait as long as some do."""

    def are_right(part: float) -> bool:
        right = [
            name for worker in workers for name in worker.led if belongs(name, workers) is worker
        ]
        return len(right) >= part * len(NAMES)

    for part in (0.5, 0.75, 0.9, 1.0):
        until(partial(are_right, part), f"{part:.0%} are where they belong")


def test_the_limit_holds_and_what_it_leaves_over_waits(hire: Callable[..., Worker]) -> None:
    workers = [hire(name, limit=80) for name in ("A", "B", "C")]
    until(lambda: led(workers) == set(NAMES), "all are led")
    *left, dead = workers
    dead.forwarder.cut()
    until(lambda: len(led(left)) == 160, "the others lead as many as they may")
    until(lambda: not dead.led, "who is cut off has stopped by itself")
    dead.forwarder.heal()
    until(lambda: led(workers) == set(NAMES), "all are led again")
    assert [worker.most for worker in workers[:2]] == [80, 80]
    assert dead.most <= 80


@pytest.mark.usefixtures("tokens_rise")
def test_elections_spread_over_those_who_come_and_go(hire: Callable[..., Worker]) -> None:
    first = hire("A")
    until(lambda: first.led == set(NAMES), "one leads all")
    workers = [first, hire("B"), hire("C")]
    wait_until_spread(workers)
    fair = len(NAMES) / 3
    assert all(abs(len(worker.led) - fair) < 4 * math.sqrt(fair) for worker in workers)

    for worker in workers:
        worker.ends.clear()
    newcomer = hire("D")
    wait_until_spread([*workers, newcomer])
    assert abs(len(newcomer.led) - len(NAMES) / 4) < 4 * math.sqrt(len(NAMES) / 4)
    ends = Counter(reason for worker in workers for reason in worker.ends)
    lost = (
        ends.total() - ends["resigned"]
    )  # on a busy machine a lease may lapse: that moves some, too
    assert len(newcomer.led) <= ends["resigned"] + lost
    assert ends["resigned"] <= len(newcomer.led) + 0.1 * len(NAMES) + 2 * lost

    newcomer.forwarder.cut()
    until(lambda: led(workers) == set(NAMES), "others have taken over")
    wait_until_spread(workers)


def test_two_hundred_elections_have_no_thread_more_than_one(hire: Callable[..., Worker]) -> None:
    worker = hire("A")
    until(lambda: worker.led == set(NAMES), "it leads all")
    many = threading.active_count()
    worker.group.remove(*NAMES[1:], timeout=30.0)
    until(lambda: worker.led == set(NAMES[:1]), "it leads one")
    assert threading.active_count() == many


def test_close_leaves_nothing_behind(
    hire: Callable[..., Worker], operator: Operator, path: str
) -> None:
    worker = hire("A")
    until(lambda: worker.led == set(NAMES), "it leads all")
    assert worker.group.close(timeout=30.0)
    assert [operator.nodes(f"{path}/{name}") for name in NAMES] == [[]] * len(NAMES)
    ends = [operator.terms(f"{path}/{name}")[-1]["reason"] for name in NAMES]
    assert ends == ["resigned"] * len(NAMES)
