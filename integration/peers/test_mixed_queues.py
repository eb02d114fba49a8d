"""H36: zkelect and the candidates of another library in one queue, as processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from peers.candidate import Candidate, assert_one_leader_at_a_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Operator, Sentry

# Each with the dialect of ours that it sees.
PEERS = [
    pytest.param("kazoo-election", "kazoo", id="kazoo-election"),
    pytest.param("kazoo-lock", "kazoo", id="kazoo-lock"),
    pytest.param("curator-latch", "curator-latch", id="curator-latch"),
    pytest.param("curator-mutex", "curator-lock", id="curator-mutex"),
    pytest.param("curator-selector", "curator-lock", id="curator-selector"),
    pytest.param("java-lock", "zkelect", id="java-lock"),
]
every_peer = pytest.mark.parametrize(("peer", "dialect"), PEERS)


@pytest.fixture
def queue(
    peer: str,
    dialect: str,
    enlist: Callable[..., Candidate],
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> Callable[[str], Candidate]:
    """Put one more into the queue, "ours" or the "peer", and wait until it has its place."""

    def queue(who: str) -> Candidate:
        count = len(operator.nodes(path)) + 1
        candidate = enlist(peer if who == "peer" else "zkelect", who, dialect=dialect)
        if who == "ours":
            candidate.wait("standing")
        eventually(lambda: len(operator.nodes(path)) == count, f"{who} stands")
        return candidate

    return queue


@every_peer
@pytest.mark.parametrize(("one", "other"), [("peer", "ours"), ("ours", "peer")])
def test_h36_one_queue_and_one_leader_whoever_starts_and_whoever_is_killed(
    queue: Callable[[str], Candidate], operator: Operator, path: str, one: str, other: str
) -> None:
    """Each starts first, leads, and is killed; each succeeds the other."""
    first = queue(one)
    first.wait("elected")
    second = queue(other)
    (_, behind) = operator.nodes(path)
    first.kill()
    second.wait("elected")
    assert operator.nodes(path) == [behind]
    third = queue(one)
    second.kill()
    third.wait("elected")
    assert_one_leader_at_a_time(first, second, third)


@every_peer
@pytest.mark.parametrize(("one", "other"), [("peer", "ours"), ("ours", "peer")])
def test_h36_one_that_is_killed_while_it_waits_lets_nobody_past_the_leader(
    queue: Callable[[str], Candidate],
    operator: Operator,
    path: str,
    one: str,
    other: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    first, second, third = queue(one), queue(other), queue(one)
    first.wait("elected")
    second.kill()
    eventually(lambda: len(operator.nodes(path)) == 2, "the one in the middle has gone")
    fourth = queue(other)  # until it stands, the third has had time to look
    assert not third.all("elected")
    first.leave()
    third.wait("elected")
    third.leave()
    fourth.wait("elected")
    assert_one_leader_at_a_time(first, third, fourth)


@every_peer
def test_h36_a_service_moves_over_and_back_process_by_process(
    queue: Callable[[str], Candidate], peer: str
) -> None:
    """The order of docs/migration.md: a new one stands, then an old one goes."""
    moving = [queue(who) for who in ("peer", "ours", "ours", "peer")]
    for old in moving[:-1]:
        old.wait("elected")
        old.leave()
    moving[-1].wait("elected")
    assert_one_leader_at_a_time(*moving)
    warned = [line for line in moving[1].all("log") if "stand in this queue" in line["message"]]
    assert len(warned) == (peer == "java-lock")  # it has no dialect of ours


@every_peer
def test_h36_the_lease_of_ours_is_over_before_a_peer_is_elected(
    peer: str,
    dialect: str,
    cast: Callable[..., Actor],
    queue: Callable[[str], Candidate],
    watch: type[Sentry],
) -> None:
    """Without a word from anybody: the link of our leader is cut."""
    ours = cast("ours", dialect=dialect)
    sentry = watch(ours.lead())
    successor = queue("peer")
    ours.forwarder.cut()
    elected = successor.wait("elected")["at"]
    sentry.relieve()
    assert sentry.passed < sentry.deadline < elected
