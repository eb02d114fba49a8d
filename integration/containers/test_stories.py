"""Elections on three containers: what must come out right whatever the network does."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest
from election.diary import Sentry
from ensembles.candidate import Candidate
from ensembles.stories import SHORT, bounce_servers, restart_in_turn, return_before_the_sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Operator

    from zkelect.testing.docker import DockerEnsemble

pytestmark = pytest.mark.timeout(1200)  # the first one may have to build an image

THOROUGH: Final = os.environ.get("ZKELECT_THOROUGH", "") not in ("", "0")


@pytest.fixture
def stand(path: str) -> Iterator[Callable[..., Candidate]]:
    """Make a candidate for this test's election, on sessions of 2 s; all leave in the end."""
    with ExitStack() as stack:

        def make(name: str, hosts: str) -> Candidate:
            return stack.enter_context(Candidate(hosts, path, name, session_timeout=SHORT))

        yield make


# --- elect, partition, fail over ---------------------------------------------------------------


def isolate(ensemble: DockerEnsemble, index: int) -> None:
    ensemble.isolate(index)


def cut_off(ensemble: DockerEnsemble, index: int) -> None:
    ensemble.partition({index}, {0, 1, 2} - {index})


def deafen(ensemble: DockerEnsemble, index: int) -> None:
    ensemble.partition({0, 1, 2} - {index}, {index}, one_way=True)


def silence(ensemble: DockerEnsemble, index: int) -> None:
    ensemble.partition({index}, {0, 1, 2} - {index}, one_way=True)


@pytest.mark.parametrize("cut", [isolate, cut_off, deafen, silence])
def test_a_leader_on_the_side_of_the_few_has_lapsed_before_its_successor_begins(
    ensemble: DockerEnsemble,
    stand: Callable[..., Candidate],
    cut: Callable[[DockerEnsemble, int], None],
) -> None:
    few = ensemble.leader()
    many = [server.address for index, server in enumerate(ensemble.servers) if index != few]
    a, b = stand("A", ensemble.servers[few].address), stand("B", ",".join(many))
    first = a.lead()
    b.queue()
    sentry = Sentry(first)
    cut(ensemble, few)
    begun = b.diary.wait("granted")
    sentry.relieve()
    assert a.diary.wait("deposed").reason == "lapsed"
    assert sentry.passed < begun.at
    assert sentry.deadline < begun.at
    assert begun.leadership.token > first.token
    ensemble.heal()
    a.await_place()
    assert begun.leadership.check() == begun.leadership.token
    b.election.stop()
    again = a.diary.wait("elected", 2).leadership
    assert again.token > begun.leadership.token


def test_a_leader_moves_on_to_another_server_and_leads_on(
    ensemble: DockerEnsemble, stand: Callable[..., Candidate]
) -> None:
    """A follower dies, the candidate connected to it has the other two: nobody is deposed."""
    a, b = stand("A", ensemble.hosts), stand("B", ensemble.hosts)
    first = a.lead()
    b.queue()
    lost = (ensemble.leader() + 1) % 3
    ensemble.servers[lost].kill()
    renewed = first.deadline
    while first.deadline < renewed + SHORT:
        assert not first.wait_lost(0.05)
    assert first.check() == first.token
    assert not b.diary.all("granted")


# --- the catalogue's ---------------------------------------------------------------------------


def test_h04_a_rolling_restart_changes_neither_leader_nor_token(
    ensemble: DockerEnsemble, path: str
) -> None:
    """marathon #4266: with sessions of 10 s."""
    restart_in_turn(ensemble, path)


def test_h23_an_old_znode_of_ours_elects_nobody(
    ensemble: DockerEnsemble, operator: Operator, path: str
) -> None:
    """CURATOR-696, druid #16411."""
    return_before_the_sweep(ensemble, operator, path)


def test_h30_servers_that_bounce_leave_one_leader_each_time(
    ensemble: DockerEnsemble, path: str, measured: Callable[[str, float, float], None]
) -> None:
    """kazoo #116, #170."""
    for bounced in bounce_servers(ensemble, path, 20 if THOROUGH else 3):
        measured("from all servers there to one leader", bounced.leaderless, SHORT + 1)
        print(f"  {bounced.requests:.1f} requests/s and {bounced.lines:.1f} lines/s a candidate")
        assert bounced.requests < 40
        assert bounced.lines < 40
