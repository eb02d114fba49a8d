"""What every guarded store keeps to. A new store joins by a bench in conftest.py."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from zkelect.errors import (
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LeadershipLost,
    LineageMismatch,
    StoreBusy,
    TokenConflict,
    Unclaimed,
)
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable

    from stores.conftest import Bench, FakeBearer, Fence

    from zkelect.stores.fence import Claimant

    MakeToken = Callable[..., Token]
    MakeBearer = Callable[..., FakeBearer]


def write(bench: Bench, fence: Fence, claimant: Claimant, entry: str) -> None:
    token = claimant if isinstance(claimant, Token) else claimant.token
    with fence.transaction(claimant) as transaction:
        bench.append(transaction, token, entry)


def entries(bench: Bench) -> list[str]:
    return [entry for _, entry in bench.log()]


# --- the cases of H50: first, equal, higher, stale, missing, two at once ---------------------


def test_before_the_first_claim_there_is_no_mark(bench: Bench) -> None:
    assert bench.fence().status() is None


def test_h50_the_first_claim_makes_the_mark(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    write(bench, fence, leader, "one")
    assert fence.status() == leader.token
    assert bench.log() == [(leader.token, "one")]


def test_h50_an_equal_token_may_claim_again(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    for _ in range(3):
        fence.claim(leader)
        write(bench, fence, leader, "again")
    assert fence.status() == leader.token
    assert len(bench.log()) == 3


def test_h50_a_higher_token_takes_over(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    fence.claim(new)
    write(bench, fence, new, "new")
    assert fence.status() == new.token


def test_h50_a_stale_claim_is_fenced(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(new)
    with pytest.raises(Fenced) as caught:
        fence.claim(old)
    refusal = caught.value
    assert (refusal.domain, refusal.token, refusal.mark) == ("d", old.token, new.token)
    assert fence.status() == new.token


def test_h50_a_stale_write_is_fenced_and_writes_nothing(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    write(bench, fence, old, "in time")
    bench.fence().claim(new)
    with pytest.raises(Fenced) as caught:
        write(bench, fence, old, "too late")
    assert (caught.value.token, caught.value.mark) == (old.token, new.token)
    assert entries(bench) == ["in time"]


def test_h50_a_mark_that_vanished_is_told(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    bench.restore(None)
    with pytest.raises(FenceStateLost):
        write(bench, fence, leader, "on nothing")
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
        write(bench, fence, leader, "mine")

    with ThreadPoolExecutor(len(leaders)) as pool:
        ends = [pool.submit(claim_and_write, leader).exception for leader in leaders]
        assert ends[-1]() is None
        assert all(end() is None or isinstance(end(), Fenced) for end in ends)
    tokens = [token for token, _ in bench.log()]
    assert tokens == sorted(tokens)
    assert bench.fence().status() == tokens[-1] == leaders[-1].token


# --- H51, H56: nothing without a claim, nothing on an older mark -----------------------------


def test_h51_without_a_claim_nothing_is_written(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    with pytest.raises(Unclaimed):
        write(bench, fence, old, "no mark yet")
    fence.claim(old)
    with pytest.raises(Unclaimed):
        write(bench, fence, new, "the mark is the predecessor's")
    assert (bench.log(), fence.status(), new.ends) == ([], old.token, [])


def test_h56_a_leader_whose_older_mark_survived_does_not_pass(
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    fence.claim(new)
    bench.restore(old.token)
    for leader in (old, new):
        with pytest.raises(FenceStateLost):
            write(bench, fence, leader, "on an older state")
    assert bench.log() == []


def test_h56_a_mark_that_was_only_seen_is_remembered(bench: Bench, bearer: MakeBearer) -> None:
    fence, elsewhere = bench.fence(), bench.fence()
    fence.claim(bearer(5))
    elsewhere.claim(bearer(6))
    with pytest.raises(Fenced):
        write(bench, fence, bearer(5), "stale")
    bench.restore(bearer(5).token)
    with pytest.raises(FenceStateLost):
        write(bench, fence, bearer(5), "stale, on its own mark")
    assert bench.log() == []


def test_h56_after_the_loss_a_new_term_may_claim(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader, next_term = bench.fence(), bearer(6), bearer(7)
    fence.claim(leader)
    bench.restore(bearer(5).token)
    fence.claim(next_term)
    write(bench, fence, next_term, "on checked data")
    assert entries(bench) == ["on checked data"]


# --- H59: whose tokens -----------------------------------------------------------------------


def test_h59_another_lineage_is_refused(bench: Bench, bearer: MakeBearer) -> None:
    fence, ours, theirs = bench.fence(), bearer(5), bearer(9, lineage="f" * 16)
    fence.claim(ours)
    with pytest.raises(LineageMismatch, match="adopt"):
        fence.claim(theirs)
    with pytest.raises(LineageMismatch):
        write(bench, fence, theirs, "foreign")
    assert (fence.status(), bench.log(), theirs.ends) == (ours.token, [], [])


def test_one_token_of_two_holders_is_a_conflict(bench: Bench, bearer: MakeBearer) -> None:
    fence, one, other = bench.fence(), bearer(5, session_id=1), bearer(5, session_id=2)
    fence.claim(one)
    with pytest.raises(TokenConflict) as caught:
        fence.claim(other)
    assert (caught.value.domain, caught.value.mark) == ("d", one.token)
    with pytest.raises(TokenConflict):
        write(bench, fence, other, "twin")
    assert (fence.status(), bench.log()) == (one.token, [])


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
    write(bench, fence, adopted, "adopted")
    assert entries(bench) == ["adopted"]


# --- the bearer ------------------------------------------------------------------------------


def test_fenced_ends_the_leadership_once(bench: Bench, bearer: MakeBearer) -> None:
    fence, old = bench.fence(), bearer(5)
    fence.claim(bearer(6))
    with pytest.raises(Fenced):
        fence.claim(old)
    with pytest.raises(LeadershipLost) as caught:
        write(bench, fence, old, "after the end")
    assert (old.ends, caught.value.reason) == (["fenced"], "fenced")


def test_an_expired_lease_fails_before_the_store_is_touched(
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, holding, expired = bench.fence(), bearer(5), bearer(6, lease=0.0)
    fence.claim(holding)
    with fence.transaction(holding):  # who asks the store now, waits
        with pytest.raises(LeadershipLost):
            bench.fence().claim(expired)
        with pytest.raises(LeadershipLost):
            write(bench, bench.fence(), expired, "late")


def test_a_transaction_that_outlives_its_lease_writes_nothing(
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def overstay() -> None:
        with fence.transaction(leader) as transaction:
            bench.append(transaction, leader.token, "slow")
            leader.lease = 0.0

    with pytest.raises(LeadershipLost):
        overstay()
    assert bench.log() == []


def test_an_error_in_the_block_writes_nothing(bench: Bench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def stumble() -> None:
        with fence.transaction(leader) as transaction:
            bench.append(transaction, leader.token, "half")
            raise KeyError

    with pytest.raises(KeyError):
        stumble()
    write(bench, fence, leader, "whole")
    assert entries(bench) == ["whole"]


def test_h61_a_token_of_an_old_term_is_refused_though_its_session_leads_again(
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, old, new = bench.fence(), bearer(5, session_id=1), bearer(6, session_id=1)
    fence.claim(old)
    fence.claim(new)
    with pytest.raises(Fenced):
        write(bench, fence, old, "zombie thread")
    write(bench, fence, new, "present term")
    assert (entries(bench), new.ends) == (["present term"], [])


# --- a bare token, as a service gets it over the wire ----------------------------------------


def test_a_bare_token_claims_by_its_first_write(bench: Bench, token: MakeToken) -> None:
    fence = bench.fence()
    write(bench, fence, token(5), "first")
    write(bench, fence, token(5), "second")
    assert (fence.status(), entries(bench)) == (token(5), ["first", "second"])


def test_a_bare_token_that_is_stale_is_fenced(bench: Bench, token: MakeToken) -> None:
    fence = bench.fence()
    write(bench, fence, token(6), "new")
    with pytest.raises(Fenced):
        write(bench, fence, token(5), "old")
    assert (fence.status(), entries(bench)) == (token(6), ["new"])


def test_the_claim_of_a_bare_token_stays_when_its_write_fails(
    bench: Bench, token: MakeToken
) -> None:
    """Its request has read the data: an older one must not write after that."""
    fence = bench.fence()

    def fail() -> None:
        with fence.transaction(token(6)):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(Fenced):
        write(bench, fence, token(5), "old")


def test_a_bare_token_is_told_of_a_lost_mark(bench: Bench, token: MakeToken) -> None:
    fence = bench.fence()
    write(bench, fence, token(5), "one")
    bench.restore(None)
    for czxid in (4, 5):
        with pytest.raises(FenceStateLost):
            write(bench, fence, token(czxid), "two")


# --- waiting, domains, bad input --------------------------------------------------------------


def test_a_store_in_use_is_busy_after_the_timeout(bench: Bench, bearer: MakeBearer) -> None:
    fence, holding = bench.fence(timeout=0.05), bearer(5)
    fence.claim(holding)
    with fence.transaction(holding) as transaction:
        with pytest.raises(StoreBusy, match=r"0\.05 s"):
            bench.fence(timeout=0.05).claim(bearer(6))
        bench.append(transaction, holding.token, "kept")
    assert (entries(bench), fence.status()) == (["kept"], holding.token)


def test_nobody_waits_longer_than_the_lease(bench: Bench, bearer: MakeBearer) -> None:
    fence, holding = bench.fence(timeout=3.0), bearer(5)
    fence.claim(holding)
    with fence.transaction(holding), pytest.raises(StoreBusy, match=r"0\.05 s"):
        bench.fence(timeout=3.0).claim(bearer(6, lease=0.05))


def test_h52_a_claim_waits_for_the_open_transaction(bench: Bench, bearer: MakeBearer) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    with ThreadPoolExecutor(1) as pool:
        with fence.transaction(old) as transaction:
            claim = pool.submit(bench.fence().claim, new)
            bench.append(transaction, old.token, "already open")
        claim.result()
    with pytest.raises(Fenced):
        write(bench, fence, old, "next")
    assert entries(bench) == ["already open"]


def test_no_thread_slips_a_write_in_after_a_claim(bench: Bench, bearer: MakeBearer) -> None:
    """Each leader writes as fast as it can until it is refused; the log's tokens never fall."""
    leaders = [bearer(czxid) for czxid in range(4)]

    def lead(leader: FakeBearer, settled: threading.Event) -> None:
        fence = bench.fence()
        try:
            fence.claim(leader)
            for _ in range(3):
                write(bench, fence, leader, "calm")
        finally:
            settled.set()
        with suppress(Fenced):
            while leader is not leaders[-1]:
                write(bench, fence, leader, "racing")

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
    write(bench, mine, low, "mine")
    assert (mine.status(), other.status()) == (low.token, high.token)


@pytest.mark.parametrize("domain", ["", " d", "d\n", "a\0b", "x" * 256, None, 5])
def test_a_bad_domain_is_refused(bench: Bench, domain: str) -> None:
    with pytest.raises(InvalidArgument, match="domain"):
        bench.fence(domain=domain)


@pytest.mark.parametrize("domain", ["d", "a b", "/elections/größe", "x" * 255])
def test_a_good_domain_is_kept_as_it_is(bench: Bench, bearer: MakeBearer, domain: str) -> None:
    fence = bench.fence(domain=domain)
    fence.claim(bearer(5))
    assert fence.status() == bearer(5).token


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), 86_401.0, "5", None])
def test_a_bad_timeout_is_refused(bench: Bench, timeout: float) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        bench.fence(timeout=timeout)


@pytest.mark.parametrize("claimant", [None, 5, "00000000-0000000000000005"])
def test_who_is_no_claimant_is_told_so(bench: Bench, claimant: Claimant) -> None:
    with pytest.raises(InvalidArgument, match=r"claimant.*Token\.parse"):
        bench.fence().claim(claimant)
