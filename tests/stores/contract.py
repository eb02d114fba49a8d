"""What every guarded store keeps to. A new store joins by a bench; see benches.py."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from stores.benches import entries, marked

from zkelect.errors import (
    DomainTaken,
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LeadershipLost,
    LineageMismatch,
    TokenConflict,
    Unclaimed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stores.bearers import FakeBearer
    from stores.benches import Bench

    from zkelect.stores.fence import Claimant
    from zkelect.token import Token

    MakeToken = Callable[..., Token]
    MakeBearer = Callable[..., FakeBearer]


# --- the cases of H50: first, equal, higher, stale, missing, two at once ---------------------


def test_before_the_first_claim_there_is_no_mark(bench: Bench) -> None:
    assert bench.fence().status() is None


def test_h50_the_first_claim_makes_the_mark(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    bench.write(fence, leader, "one")
    assert marked(fence) == leader.token
    assert bench.log() == [(leader.token, "one")]


def test_h50_an_equal_token_may_claim_again(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    for _ in range(3):
        fence.claim(leader)
        bench.write(fence, leader, "again")
    assert marked(fence) == leader.token
    assert len(bench.log()) == 3


def test_h50_a_higher_token_takes_over(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    fence.claim(new)
    bench.write(fence, new, "new")
    assert marked(fence) == new.token


def test_h50_a_stale_claim_is_fenced(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(new)
    with pytest.raises(Fenced) as caught:
        fence.claim(old)
    refusal = caught.value
    assert (refusal.domain, refusal.token, refusal.mark) == ("d", old.token, new.token)
    assert marked(fence) == new.token


def test_h50_a_stale_write_is_fenced_and_writes_nothing(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    bench.write(fence, old, "in time")
    bench.fence().claim(new)
    with pytest.raises(Fenced) as caught:
        bench.write(fence, old, "too late")
    assert (caught.value.token, caught.value.mark) == (old.token, new.token)
    assert entries(bench) == ["in time"]


def test_h50_a_mark_that_vanished_is_told(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    bench.restore(None)
    with pytest.raises(FenceStateLost):
        bench.write(fence, leader, "on nothing")
    with pytest.raises(FenceStateLost):
        fence.claim(leader)
    assert (entries(bench), leader.ends) == ([], [])


@pytest.mark.parametrize("round_", range(5))
def test_h50_of_many_creators_at_once_the_highest_stays(
    bench: Bench, bearer: MakeBearer, round_: int
) -> None:
    leaders = [bearer(czxid) for czxid in range(6)]
    start = threading.Barrier(len(leaders))

    def claim_and_write(leader: FakeBearer) -> None:
        fence = bench.fence()
        start.wait()
        fence.claim(leader)
        bench.write(fence, leader, "mine")

    with ThreadPoolExecutor(len(leaders)) as pool:
        ends = [pool.submit(claim_and_write, leader).exception for leader in leaders]
        assert ends[-1]() is None
        assert all(end() is None or isinstance(end(), Fenced) for end in ends)
    tokens = [token for token, _ in bench.log()]
    assert tokens == sorted(tokens)
    assert marked(bench.fence()) == tokens[-1] == leaders[-1].token


# --- H51, H56: nothing without a claim, nothing on an older mark -----------------------------


def test_h51_without_a_claim_nothing_is_written(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    with pytest.raises(FenceStateLost if bench.volatile else Unclaimed):
        bench.write(fence, old, "no mark yet")
    fence.claim(old)
    with pytest.raises(Unclaimed):
        bench.write(fence, new, "the mark is the predecessor's")
    assert (bench.log(), marked(fence), new.ends) == ([], old.token, [])


def test_h56_a_leader_whose_older_mark_survived_does_not_pass(
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    fence.claim(new)
    bench.restore(old.token)
    for leader in (old, new):
        with pytest.raises(FenceStateLost):
            bench.write(fence, leader, "on an older state")
    assert bench.log() == []


def test_h56_a_mark_that_was_only_seen_is_remembered(bench: Bench, bearer: MakeBearer) -> None:
    fence, elsewhere = bench.fence(), bench.fence()
    fence.claim(bearer(5))
    elsewhere.claim(bearer(6))
    with pytest.raises(Fenced):
        bench.write(fence, bearer(5), "stale")
    bench.restore(bearer(5).token)
    with pytest.raises(FenceStateLost):
        bench.write(fence, bearer(5), "stale, on its own mark")
    assert bench.log() == []


def test_h56_after_the_loss_a_new_term_may_claim(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader, next_term = bench.fence(), bearer(6), bearer(7)
    fence.claim(leader)
    bench.restore(bearer(5).token)
    fence.claim(next_term)
    bench.write(fence, next_term, "on checked data")
    assert entries(bench) == ["on checked data"]


# --- H59: whose tokens -----------------------------------------------------------------------


def test_h59_another_lineage_is_refused(bench: Bench, bearer: MakeBearer) -> None:
    fence, ours, theirs = bench.fence(), bearer(5), bearer(9, lineage="f" * 16)
    fence.claim(ours)
    with pytest.raises(LineageMismatch, match="adopt") as caught:
        fence.claim(theirs)
    with pytest.raises(LineageMismatch):
        bench.write(fence, theirs, "foreign")
    refusal = caught.value
    assert (refusal.domain, refusal.token, refusal.mark) == ("d", theirs.token, ours.token)
    assert (marked(fence), bench.log(), theirs.ends) == (ours.token, [], [])


def test_one_token_of_two_holders_is_a_conflict(bench: Bench, bearer: MakeBearer) -> None:
    fence, one, other = bench.fence(), bearer(5, session_id=1), bearer(5, session_id=2)
    fence.claim(one)
    with pytest.raises(TokenConflict) as caught:
        fence.claim(other)
    assert (caught.value.domain, caught.value.mark) == ("d", one.token)
    with pytest.raises(TokenConflict):
        bench.write(fence, other, "twin")
    assert (marked(fence), bench.log()) == (one.token, [])


def test_h59_a_restored_ensemble_is_told_and_its_leader_not_ended(
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, restored = bench.fence(), bearer(60, zxid=100)
    fence.claim(bearer(900))
    for _ in range(2):
        with pytest.raises(EnsembleWentBack, match="adopt"):
            fence.claim(restored)
    assert restored.ends == []


def test_h59_the_raised_generation_passes(bench: Bench, bearer: MakeBearer) -> None:
    fence, adopted = bench.fence(), bearer(60, generation=1, zxid=100)
    fence.claim(bearer(900))
    fence.claim(adopted)
    bench.write(fence, adopted, "adopted")
    assert entries(bench) == ["adopted"]


# --- the bearer ------------------------------------------------------------------------------


def test_fenced_ends_the_leadership_once(bench: Bench, bearer: MakeBearer) -> None:
    fence, old = bench.fence(), bearer(5)
    fence.claim(bearer(6))
    with pytest.raises(Fenced):
        fence.claim(old)
    with pytest.raises(LeadershipLost) as caught:
        bench.write(fence, old, "after the end")
    assert (old.ends, caught.value.reason) == (["fenced"], "fenced")


def test_h61_a_token_of_an_old_term_is_refused_though_its_session_leads_again(
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, old, new = bench.fence(), bearer(5, session_id=1), bearer(6, session_id=1)
    fence.claim(old)
    fence.claim(new)
    with pytest.raises(Fenced):
        bench.write(fence, old, "zombie thread")
    bench.write(fence, new, "present term")
    assert (entries(bench), new.ends) == (["present term"], [])


# --- a bare token, as a service gets it over the wire ----------------------------------------


def test_a_bare_token_claims_by_its_first_write(bench: Bench, token: MakeToken) -> None:
    fence = bench.fence()
    bench.write(fence, token(5), "first")
    bench.write(fence, token(5), "second")
    assert (marked(fence), entries(bench)) == (token(5), ["first", "second"])


def test_a_bare_token_that_is_stale_is_fenced(bench: Bench, token: MakeToken) -> None:
    fence = bench.fence()
    bench.write(fence, token(6), "new")
    with pytest.raises(Fenced):
        bench.write(fence, token(5), "old")
    assert (marked(fence), entries(bench)) == (token(6), ["new"])


def test_a_bare_token_is_told_of_a_lost_mark(bench: Bench, token: MakeToken) -> None:
    fence = bench.fence()
    bench.write(fence, token(5), "one")
    bench.restore(None)
    for czxid in (4, 5):
        with pytest.raises(FenceStateLost):
            bench.write(fence, token(czxid), "two")


# --- waiting, domains, bad input --------------------------------------------------------------


def test_no_thread_slips_a_write_in_after_a_claim(bench: Bench, bearer: MakeBearer) -> None:
    """Each leader writes as fast as it can until it is refused; the log's tokens never fall."""
    leaders = [bearer(czxid) for czxid in range(4)]

    def lead(leader: FakeBearer, settled: threading.Event) -> None:
        fence = bench.fence()
        try:
            fence.claim(leader)
            for _ in range(3):
                bench.write(fence, leader, "calm")
        finally:
            settled.set()
        with suppress(Fenced):
            while leader is not leaders[-1]:
                bench.write(fence, leader, "racing")

    with ThreadPoolExecutor(len(leaders)) as pool:
        terms = []
        for leader in leaders:
            settled = threading.Event()
            terms.append(pool.submit(lead, leader, settled))
            settled.wait()
        for term in terms:
            term.result()
    tokens = [token for token, _ in bench.log()]
    assert tokens == sorted(tokens)
    assert set(tokens) == {leader.token for leader in leaders}
    assert [leader.ends for leader in leaders] == [["fenced"]] * 3 + [[]]


def test_domains_are_independent(bench: Bench, bearer: MakeBearer) -> None:
    mine, other = bench.fence(), bench.fence(domain="D")
    low, high = bearer(5), bearer(9, lineage="f" * 16)
    other.claim(high)
    mine.claim(low)
    bench.write(mine, low, "mine")
    assert (marked(mine), marked(other)) == (low.token, high.token)


@pytest.mark.parametrize("domain", ["", " d", "d\n", "a\0b", "x" * 256, None, 5])
def test_a_bad_domain_is_refused(bench: Bench, domain: str) -> None:
    with pytest.raises(InvalidArgument, match="domain"):
        bench.fence(domain=domain)


@pytest.mark.parametrize("domain", ["d", "a b", "/elections/größe", "x" * 255])
def test_a_good_domain_is_kept_as_it_is(bench: Bench, bearer: MakeBearer, domain: str) -> None:
    fence = bench.fence(domain=domain)
    fence.claim(bearer(5))
    assert marked(fence) == bearer(5).token


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), 86_401.0, "5", None])
def test_a_bad_timeout_is_refused(bench: Bench, timeout: float) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        bench.fence(timeout=timeout)


@pytest.mark.parametrize("claimant", [None, 5, "00000000-0000000000000005"])
def test_who_is_no_claimant_is_told_so(bench: Bench, claimant: Claimant) -> None:
    with pytest.raises(InvalidArgument, match=r"claimant.*Token\.parse"):
        bench.fence().claim(claimant)


# --- who holds it, and whose the domain is -----------------------------------------------------


def test_a_refusal_names_who_holds_the_mark(bench: Bench, bearer: MakeBearer) -> None:
    fence, old = bench.fence(), bearer(5, name="host-a")
    fence.claim(old)
    bench.fence().claim(bearer(6, name="host-b"))
    with pytest.raises(Fenced, match="host-b") as caught:
        bench.write(fence, old, "too late")
    assert (caught.value.holder, caught.value.domain) == ("host-b", "d")


def test_h63_a_domain_of_another_election_is_refused(bench: Bench, bearer: MakeBearer) -> None:
    fence, owner = bench.fence(), bearer(5, path="/elections/a")
    intruder = bearer(9, path="/elections/b", lineage="f" * 16)
    fence.claim(owner)
    with pytest.raises(DomainTaken, match="/elections/a"):
        bench.fence().claim(intruder)
    with pytest.raises(DomainTaken):
        bench.write(bench.fence(), intruder, "in a domain not ours")
    bench.write(fence, owner, "undisturbed")
    assert (entries(bench), intruder.ends) == (["undisturbed"], [])
