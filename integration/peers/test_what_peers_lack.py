"""What is not promised while old and new processes share a queue, and what is all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Operator
    from peers.candidate import Candidate

    from zkelect.testing import LocalEnsemble

SILENT = [("kazoo-election", "kazoo"), ("kazoo-lock", "kazoo"), ("java-lock", "zkelect")]
TELLING = [
    ("curator-latch", "curator-latch"),
    ("curator-selector", "curator-lock"),
    ("curator-mutex", "curator-lock"),
]


@pytest.fixture
def behind(cast: Callable[..., Actor]) -> Callable[[str], Actor]:
    """Stand in a dialect, behind a peer that leads."""

    def stand(dialect: str) -> Actor:
        ours = cast("ours", dialect=dialect).queue()
        leader = ours.election.leader()
        assert leader is not None
        assert leader.foreign
        return ours

    return stand


# --- no lease --------------------------------------------------------------------------------


@pytest.mark.parametrize(("peer", "dialect"), SILENT)
def test_a_peer_that_is_cut_off_goes_on_leading_beside_ours(
    peer: str,
    dialect: str,
    enlist: Callable[..., Candidate],
    behind: Callable[[str], Actor],
    zookeeper: LocalEnsemble,
) -> None:
    """Only a server can tell it that its session is over, and none can reach it."""
    with Forwarder(zookeeper.hosts) as link:
        old = enlist(peer, hosts=link.hosts)
        old.wait("elected")
        ours = behind(dialect)
        link.cut()
        ours.diary.wait("elected")
        old.wait("suspended")
        assert not old.all("lost")
        link.heal()
        old.wait("lost")


@pytest.mark.parametrize(("peer", "dialect"), TELLING)
def test_a_peer_of_curator_that_is_cut_off_tells_its_end_by_itself(
    peer: str,
    dialect: str,
    enlist: Callable[..., Candidate],
    behind: Callable[[str], Actor],
    zookeeper: LocalEnsemble,
) -> None:
    with Forwarder(zookeeper.hosts) as link:
        old = enlist(peer, hosts=link.hosts)
        old.wait("elected")
        ours = behind(dialect)
        link.cut()
        old.wait("lost")
        ours.diary.wait("elected")


@pytest.mark.parametrize(("peer", "dialect"), [*SILENT, *TELLING])
def test_a_peer_that_was_paused_finds_ours_leading(
    peer: str, dialect: str, enlist: Callable[..., Candidate], behind: Callable[[str], Actor]
) -> None:
    old = enlist(peer)
    old.wait("elected")
    ours = behind(dialect)
    old.pause()
    elected = ours.diary.wait("elected")
    old.resume()
    assert old.wait("lost")["at"] > elected.at
    assert elected.leadership.check() == elected.leadership.token


# --- no token, no record -----------------------------------------------------------------------


def test_a_peer_that_leads_has_a_name_and_no_token_and_ours_rise_across_its_term(
    enlist: Callable[..., Candidate],
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    a, b = cast("a"), cast("b")
    before = a.lead()
    peer = enlist("kazoo-election", "old-1")
    eventually(lambda: len(operator.nodes(path)) == 2, "the peer stands")
    b.queue()
    a.election.stop()
    peer.wait("elected")
    leader = b.election.leader()
    assert leader is not None
    assert (leader.name, leader.foreign, leader.token) == ("old-1", True, None)
    peer.leave()
    after = b.diary.wait("elected").leadership
    assert after.token > before.token


def test_ours_joins_a_queue_that_kazoo_began_and_is_shown_there_by_name(
    enlist: Callable[..., Candidate], cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    enlist("kazoo-election", "old-1").wait("elected")
    ours = cast("new-1").queue()
    assert operator.kazoo.Election(path).contenders() == ["old-1", "new-1"]
    assert [each.name for each in ours.election.candidates()] == ["old-1", "new-1"]
    assert operator.kazoo.exists(f"{path}.zkelect")


# --- two dialects ------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [("kazoo", "curator-latch"), ("zkelect", "kazoo")])
def test_ours_of_two_dialects_wait_for_each_other(
    one: str, other: str, cast: Callable[..., Actor]
) -> None:
    a, b = cast("a", dialect=one), cast("b", dialect=other)
    a.lead()
    b.queue()
    a.election.stop()
    b.diary.wait("elected")
    a.queue()
    b.election.stop()
    a.diary.wait("elected", 2)


def test_kazoos_lock_waits_for_a_dialect_of_curators_when_it_is_told_to(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    """extra_lock_patterns, since kazoo 2.7.1; its Election has no such option."""
    ours = cast("ours", dialect="curator-latch")
    ours.lead()
    blind = operator.kazoo.Lock(path, "blind")
    assert blind.acquire(blocking=False)
    seeing = operator.kazoo.Lock(path, "seeing", extra_lock_patterns=["-latch-"])
    blind.release()
    assert not seeing.acquire(blocking=False)
    ours.election.stop()
    assert seeing.acquire(timeout=30.0)
