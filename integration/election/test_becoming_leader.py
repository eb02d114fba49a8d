"""Becoming: the queue decides, and each candidate keeps its place in it."""

from __future__ import annotations

import signal
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import zkelect
from zkelect.session.clock import SystemClock
from zkelect.testing import expire

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Campaign, Operator, Process

    from zkelect.testing import LocalEnsemble

T = 2.0
boottime = SystemClock().boottime


# --- H27: the predecessor vanishes between the roll and the watch ------------------------------


@pytest.mark.parametrize("vanishing", [1, 2])
def test_h27_a_predecessor_that_vanishes_before_its_watch_is_walked_past(
    vanishing: int,
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    operator: Operator,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    """CURATOR-644."""
    a, c = cast("A"), cast("C")
    a.lead()
    peers = [operator.stand(path) for _ in range(vanishing)]
    get, left = c.session.gateway.get, set(peers)

    def get_late(znode: str, *arguments: Any, **options: Any) -> None:
        """The roll has told of the peer; by the time of the watch it is gone."""
        node = znode.rpartition("/")[2]
        if node in left:
            left.remove(node)
            operator.delete(path, node)
        get(znode, *arguments, **options)

    monkeypatch.setattr(c.session.gateway, "get", get_late)
    creates = c.forwarder.requests["create2"]
    standing = campaign(c.election)
    eventually(lambda: not left and c.forwarder.replies["getData"] >= 3 + vanishing, "C walked on")
    leader, own = operator.nodes(path)
    assert not standing.elected.done()
    operator.delete(path, leader)
    leadership = standing.leadership()
    assert leadership.node == own
    assert own.endswith(f"{vanishing + 1:010}")
    assert c.forwarder.requests["create2"] == creates + 1
    assert c.forwarder.requests["getChildren"] == 1


# --- H28: a waiter's session dies --------------------------------------------------------------


@pytest.mark.parametrize("told", [True, False])
def test_h28_a_waiter_whose_session_died_is_not_elected_with_its_old_znode(
    told: bool,
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    operator: Operator,
    zookeeper: LocalEnsemble,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    """etcd #11456."""
    a, b = cast("A"), cast("B", session_timeout=4.0)
    leading = campaign(a.election)
    first = leading.leadership()
    standing = campaign(b.election)
    eventually(lambda: b.election.phase is zkelect.Phase.WAITING, "B waits")
    old = operator.nodes(path)[1]
    old_session, _ = b.session.credentials()
    if not told:
        b.forwarder.refuse()
    expire(b.session, hosts=zookeeper.hosts)
    assert old not in operator.nodes(path)
    leading.leave()
    if not told:
        assert operator.nodes(path) == []
        assert not standing.elected.done()
        b.forwarder.accept()
    leadership = standing.leadership()
    assert leadership.node != old
    assert leadership.session_id == b.session.credentials()[0] != old_session
    stat = operator.kazoo.exists(f"{path}/{leadership.node}")
    assert (stat.czxid, stat.ephemeralOwner) == (leadership.token.czxid, leadership.session_id)
    assert leadership.token > first.token
    assert [note.leadership for note in b.diary.all("granted")] == [leadership]


# --- H31, H32: names -----------------------------------------------------------------------------


def test_h31_a_killed_leader_that_restarts_queues_behind_its_own_old_znode_and_says_so(
    spawn: Callable[..., Process],
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    """patroni #774, storm #3107."""
    first = spawn("host-a")
    old = first.wait("elected")
    eventually(lambda: operator.term(path), "the first term is written")
    first.signal(signal.SIGKILL)
    first.end()
    second = spawn("host-a")
    second.wait("standing")
    said = second.wait("log")
    assert operator.nodes(path)[0] == old["node"]
    assert (said["level"], said["logger"]) == ("WARNING", "zkelect")
    assert old["node"] in said["message"]
    assert "host-a" in said["message"]
    new = second.wait("elected")
    assert new["at"] > said["at"]
    assert new["node"] != old["node"]
    assert new["token"] > old["token"]
    assert old["node"] not in operator.nodes(path)
    eventually(lambda: operator.terms(path), "the successor writes how the dead term ended")
    assert [(term["node"], term["reason"]) for term in operator.terms(path)] == [
        (old["node"], "died")
    ]


def test_h32_two_candidates_of_the_same_name_are_two_candidates(
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    a, b = cast("twin"), cast("twin").election
    leading = campaign(a.election)
    first = leading.leadership()
    standing = campaign(b)
    eventually(lambda: b.phase is zkelect.Phase.WAITING, "the twin waits")
    assert [candidate.name for candidate in a.election.candidates()] == ["twin", "twin"]
    assert a.election.phase is zkelect.Phase.LEADING
    assert first.check() == first.token
    assert not standing.elected.done()
    leading.leave()
    second = standing.leadership()
    assert second.token > first.token
    assert first.reason == "resigned"


# --- H37: the timeout of a campaign --------------------------------------------------------------


def failed(standing: Campaign) -> bool:
    """Whether the campaign failed within the pace at which the queue moves."""
    with suppress(NotYet):
        return standing.elected.exception(0.4) is not None
    return False


def test_h37_a_campaign_ends_at_its_timeout_however_often_the_queue_moves(
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    operator: Operator,
    path: str,
    measured: Callable[[str, float, float], None],
) -> None:
    """kazoo's Election waits anew at each move: 6.8 s measured for 2."""
    peers = [operator.stand(path) for _ in range(60)]
    b = cast("B")
    began = boottime()
    standing = campaign(b.election, 2.0)
    moves = 0
    while not failed(standing) and moves < len(peers):
        operator.delete(path, peers[-1 - moves])
        moves += 1
    raised = standing.elected.exception(0.0)
    assert isinstance(raised, zkelect.NotElected)
    measured(f"campaign(2.0) while the queue moved {moves} times", boottime() - began, 2.0)
    assert moves > 1
    assert raised.ahead == len(peers) - moves
    assert b.forwarder.wait_for(lambda: operator.nodes(path) == peers[: len(peers) - moves])
