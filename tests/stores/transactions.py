"""What every store keeps to whose guarded transactions stay open for a while."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from stores.benches import entries, marked

from zkelect.errors import (
    Fenced,
    LeadershipLost,
    StoreBusy,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stores.bearers import FakeBearer
    from stores.benches import TransactionBench

    from zkelect.token import Token

    MakeToken = Callable[..., Token]
    MakeBearer = Callable[..., FakeBearer]


def test_an_expired_lease_fails_before_the_store_is_touched(
    bench: TransactionBench, bearer: MakeBearer
) -> None:
    fence, holding, expired = bench.fence(), bearer(5), bearer(6, lease=0.0)
    fence.claim(holding)
    with bench.transaction(fence, holding):  # who asks the store now, waits
        with pytest.raises(LeadershipLost):
            bench.fence().claim(expired)
        with pytest.raises(LeadershipLost):
            bench.write(bench.fence(), expired, "late")


def test_a_transaction_that_outlives_its_lease_writes_nothing(
    bench: TransactionBench, bearer: MakeBearer
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def overstay() -> None:
        with bench.transaction(fence, leader) as transaction:
            bench.append(transaction, leader.token, "slow")
            leader.lease = 0.0

    with pytest.raises(LeadershipLost):
        overstay()
    assert bench.log() == []


def test_an_error_in_the_block_writes_nothing(bench: TransactionBench, bearer: MakeBearer) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)

    def stumble() -> None:
        with bench.transaction(fence, leader) as transaction:
            bench.append(transaction, leader.token, "half")
            raise KeyError

    with pytest.raises(KeyError):
        stumble()
    bench.write(fence, leader, "whole")
    assert entries(bench) == ["whole"]


def test_the_claim_of_a_bare_token_stays_when_its_write_fails(
    bench: TransactionBench, token: MakeToken
) -> None:
    """Its request has read the data: an older one must not write after that."""
    fence = bench.fence()

    def fail() -> None:
        with bench.transaction(fence, token(6)):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(Fenced):
        bench.write(fence, token(5), "old")


def test_a_store_in_use_is_busy_after_the_timeout(
    bench: TransactionBench, bearer: MakeBearer
) -> None:
    fence, holding = bench.fence(timeout=0.05), bearer(5)
    fence.claim(holding)
    with bench.transaction(fence, holding) as transaction:
        with pytest.raises(StoreBusy, match=r"0\.05 s"):
            bench.fence(timeout=0.05).claim(bearer(6))
        bench.append(transaction, holding.token, "kept")
    assert (entries(bench), marked(fence)) == (["kept"], holding.token)


def test_nobody_waits_longer_than_the_lease(bench: TransactionBench, bearer: MakeBearer) -> None:
    fence, holding = bench.fence(timeout=3.0), bearer(5)
    fence.claim(holding)
    with bench.transaction(fence, holding), pytest.raises(StoreBusy, match=r"0\.05 s"):
        bench.fence(timeout=3.0).claim(bearer(6, lease=0.05))


def test_h52_a_claim_waits_for_the_open_transaction(
    bench: TransactionBench, bearer: MakeBearer
) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    fence.claim(old)
    with ThreadPoolExecutor(1) as pool:
        with bench.transaction(fence, old) as transaction:
            claim = pool.submit(bench.fence().claim, new)
            with pytest.raises(StoreBusy):  # who comes now does not get through at all
                bench.fence().claim(bearer(6, lease=0.05))
            bench.append(transaction, old.token, "already open")
        claim.result()
    with pytest.raises(Fenced):
        bench.write(fence, old, "next")
    assert entries(bench) == ["already open"]
