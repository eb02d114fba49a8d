"""docs/promotion_clients.md, pgbouncer: in front of a cluster and its agents, under writers."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from election.waiting import boottime, until
from recipes.bouncer import Bouncer, Leader
from recipes.front_stage import FrontStage, front_staged
from recipes.front_writer import FrontWriter
from recipes.sampler import Sampler

from zkelect.recipes.pools import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble

RATE: Final = 1000.0


@pytest.fixture
def front(zookeeper: LocalEnsemble, path: str) -> Iterator[FrontStage]:
    with front_staged(zookeeper, path) as stage:
        yield stage


@contextmanager
def led(front: FrontStage, *options: str) -> Iterator[Bouncer]:
    """Lend one that is led to the primary."""
    with Bouncer() as made, Leader(made, front.zookeeper.hosts, front.path, *options) as leader:
        until(made.file.exists, "the file is written")
        made.start()
        until(lambda: front.board.pools() == {"pool": Pool()}, "the pool is known")
        yield made
        print(leader.said)


@pytest.fixture
def bouncer(front: FrontStage) -> Iterator[Bouncer]:
    with led(front) as made:
        yield made


@pytest.mark.timeout(1800)
def test_planned_switches_through_pgbouncer_cost_no_client_an_error(
    front: FrontStage, bouncer: Bouncer, times: Callable[..., int]
) -> None:
    """1,000 rows a second, in transaction pooling; the longest pause is printed."""
    with Sampler(front.cluster) as sampler, FrontWriter(bouncer.connect, rate=RATE) as writer:
        writer.wait_for(100, port=front.primary.port)
        for _ in range(times(2, 20)):
            front.switch_over(writer)
            front.wait_following()
        lost = front.lost_rows(writer)
    print(told("pgbouncer, planned", writer, lost))
    assert writer.failed == []
    assert lost == []
    front.check_one_writable(writer, sampler)


@pytest.mark.timeout(300)
def test_an_open_transaction_ends_before_the_primary_is_closed(front: FrontStage) -> None:
    """Its client goes on for two seconds after the pool is held, and commits."""
    to = front.cluster.others(front.primary.name)[0]
    with led(front, "--within", "9") as bouncer, bouncer.connect(autocommit=False) as client:
        client.execute("insert into written (number) values (1)")
        with ThreadPoolExecutor() as operator:
            switch = operator.submit(front.promotion.switchover, to.name)
            until(bouncer.paused, "the pool is held")
            end = boottime() + 2
            while boottime() < end:
                client.execute("select count(*) from written")
            client.execute("insert into written (number) values (2)")
            client.commit()
            assert switch.result(60) == to.name
        client.execute("insert into written (number) values (3)")
        client.commit()
    assert to.written() == {1, 2, 3}


@pytest.mark.timeout(300)
def test_a_fail_over_through_pgbouncer_goes_on_by_itself(
    front: FrontStage, bouncer: Bouncer
) -> None:
    """The host of the primary is killed; later it comes back, and gets no write."""
    with Sampler(front.cluster) as sampler, FrontWriter(bouncer.connect, rate=RATE) as writer:
        writer.wait_for(100, port=front.primary.port)
        old = front.primary
        front.fail_over(writer)
        front.agents[old.name].start()
        front.wait_following()
        writer.wait_for(100, port=front.primary.port)
        lost = front.lost_rows(writer)
    print(told("pgbouncer, host killed", writer, lost))
    front.check_one_writable(writer, sampler)


@pytest.mark.timeout(300)
def test_connections_to_a_host_that_hangs_do_not_hold_the_pool(
    front: FrontStage, bouncer: Bouncer
) -> None:
    """Its kernel answers for it, so that nobody says that they are dead: they are killed.

    When such a host goes on its server may take writes until its dead-man has woken, as
    docs/promotion.md says; no client is led there.
    """
    with FrontWriter(bouncer.connect, rate=RATE) as writer:
        writer.wait_for(100, port=front.primary.port)
        frozen = front.agents[front.primary.name]
        frozen.signal(signal.SIGSTOP)
        frozen.node.signal(signal.SIGSTOP)
        try:
            front.await_another(writer)
            until(lambda: outdated(bouncer) == 0, "no connection leads to the old primary")
            hung = list(writer.failed)
        finally:
            frozen.node.signal(signal.SIGCONT)
            frozen.signal(signal.SIGCONT)
        until(lambda: frozen.ask("/primary") == 503, "it knows that it is the primary no more")
        writer.wait_for(100, port=front.primary.port)
        lost = front.lost_rows(writer)
    print(told("pgbouncer, host hangs", writer, lost))
    assert hung
    front.check_one_written(writer)


def outdated(bouncer: Bouncer) -> int:
    return sum(int(row["close_needed"]) for row in bouncer.shown("SERVERS"))


def told(what: str, writer: FrontWriter, lost: list[int]) -> str:
    texts = {re.sub(r"\d+", "N", each.text)[:90] for each in writer.failed}
    return (
        f"{what}: pause {writer.pause():.2f} s, confirmed {len(writer.confirmed)}, "
        f"lost {len(lost)}, errors {len(writer.failed)}: {'; '.join(sorted(texts))}"
    )
