"""H35: who else is on the path, when it is the real libraries that have put it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Campaign, Operator
    from peers.candidate import Candidate

# In this order none sees those before it, and each leads; the Java lock would wait for Curator's.
REAL = {
    "java-election": "n_",
    "java-lock": "x-",
    "kazoo-lock": "__lock__",
    "curator-latch": "-latch-",
    "curator-mutex": "-lock-",
}
OTHERS = [kind for kind in REAL if kind != "kazoo-lock"]
BLIND = [kind for kind in OTHERS if kind != "java-election"]
GO = "_c_0123456789ab4def8123456789abcdef-lock-"
SEQUENTIAL = "election_"  # of no library that is known to us


@pytest.fixture
def put(operator: Operator, path: str) -> Callable[..., str]:
    """Put a child on the path, as another client does; return its name."""

    def put(name: str, **how: bool) -> str:
        made: str = operator.kazoo.create(f"{path}/{name}", makepath=True, **how)
        return made.rpartition("/")[2]

    return put


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[str]]:
    """Return the warnings that contain a text."""
    return lambda text: [told for told in caplog.messages if text in told]


def test_h35_ours_waits_for_every_known_peer_and_for_no_stranger(
    enlist: Callable[..., Candidate],
    put: Callable[..., str],
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    warnings: Callable[[str], list[str]],
) -> None:
    real = []
    for kind in REAL:
        real.append(enlist(kind))
        real[-1].wait("elected")
    put("config")
    put("notes")
    go = put(GO, ephemeral=True, sequence=True)
    ours = cast("ours").queue()
    roll = ours.election.candidates()
    assert [each.foreign for each in roll] == [True] * 6 + [False]
    for mark, each in zip((*REAL.values(), GO), roll, strict=False):
        assert mark in each.node
    (told,) = warnings("stand in this queue")
    assert "candidates of curator-latch, curator-lock, java, java-election stand" in told
    assert "'config'" in warnings("2 children are no candidates that we know")[0]
    for candidate in real:
        candidate.leave()
    leader = ours.election.leader()
    assert leader is not None
    assert (leader.node, leader.foreign, leader.token) == (go, True, None)
    assert not ours.diary.all("elected")
    operator.delete(path, go)
    ours.diary.wait("elected")


@pytest.mark.parametrize("kind", BLIND)
def test_h35_a_peer_of_another_dialect_leads_beside_ours(
    kind: str, enlist: Callable[..., Candidate], cast: Callable[..., Actor]
) -> None:
    """What the warning is about: it does not see the candidate that it should wait for."""
    leadership = cast("ours").lead()
    enlist(kind).wait("elected")
    assert leadership.check() == leadership.token


def test_h35_the_java_election_bears_no_other_name_on_its_path(
    enlist: Callable[..., Candidate], cast: Callable[..., Actor]
) -> None:
    """NumberFormatException: it takes each child for one of its own."""
    leadership = cast("ours").lead()
    enlist("java-election").wait("failed")
    assert leadership.check() == leadership.token


@pytest.mark.parametrize(
    ("kind", "dialect"), [*((kind, "kazoo") for kind in OTHERS), ("java-lock", "zkelect")]
)
def test_h35_who_is_strict_does_not_stand_beside_a_peer_of_another_dialect(
    kind: str,
    dialect: str,
    enlist: Callable[..., Candidate],
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    peer = enlist(kind)
    peer.wait("elected")
    (node,) = operator.nodes(path)
    with pytest.raises(zkelect.ForeignCompany, match=f"dialect '{dialect}'"):
        campaign(cast("ours", dialect=dialect, strict=True).election).leadership()
    eventually(lambda: operator.nodes(path) == [node], "ours has left")
    peer.leave()
    cast("ours", dialect=dialect, strict=True).lead()


def test_h35_who_is_strict_stands_beside_peers_of_its_own_dialect_and_named_children(
    enlist: Callable[..., Candidate], put: Callable[..., str], cast: Callable[..., Actor]
) -> None:
    put("config")
    peer = enlist("curator-latch")
    peer.wait("elected")
    ours = cast("ours", dialect="curator-latch", strict=True).queue()
    peer.leave()
    ours.diary.wait("elected")


def test_h35_a_sequential_stranger_is_ignored_but_refused_by_who_is_strict(
    put: Callable[..., str],
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    warnings: Callable[[str], list[str]],
) -> None:
    stranger = put(SEQUENTIAL, ephemeral=True, sequence=True)
    careless = cast("careless")
    careless.lead()
    assert repr(stranger) in warnings("1 children are no candidates that we know")[0]
    careless.election.stop()
    with pytest.raises(zkelect.ForeignCompany, match=stranger):
        campaign(cast("ours", strict=True).election).leadership()
