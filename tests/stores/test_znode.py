"""The ZooKeeper store before anything is sent; with servers: integration/stores/test_znode.py."""

from __future__ import annotations

from typing import Any

import pytest
from stores.bearers import FakeBearer, make_token

from zkelect.errors import Fenced, InvalidArgument, LeadershipLost, Misuse
from zkelect.stores.znode import Transaction, ZnodeFence


class Diary:
    """A batch that notes what is put into it."""

    def __init__(self, leader: Leader) -> None:
        self.notes: list[tuple[Any, ...]] = []
        self._leader = leader

    def check(self, *what: Any) -> None:
        self.notes.append(("check", *what))

    def set_data(self, *what: Any) -> None:
        self.notes.append(("set_data", *what))

    def create(self, *what: Any, ephemeral: bool) -> None:
        self.notes.append(("create", *what, ephemeral))

    def delete(self, *what: Any) -> None:
        self.notes.append(("delete", *what))

    def commit(self, timeout: float) -> bool:
        self._leader.check()
        self._leader.timeouts.append(timeout)
        if self._leader.stands:
            self._leader.committed.append(self.notes)
        return self._leader.stands


class Leader(FakeBearer):
    """A leadership whose commits are noted. ``stands``: whether its candidate is there."""

    def __init__(self) -> None:
        super().__init__(make_token(5))
        self.node, self.stands = "c", True
        self.committed: list[list[tuple[Any, ...]]] = []
        self.timeouts: list[float] = []

    def batch(self) -> Diary:
        return Diary(self)


@pytest.fixture
def leader() -> Leader:
    return Leader()


def test_all_of_the_block_is_committed_at_its_end_in_order(leader: Leader) -> None:
    with ZnodeFence(leader).transaction() as tx:
        tx.check("/a", 4)
        tx.set_data("/b", b"1")
        tx.set_data("/c", bytearray(b"2"), version=0)
        tx.create("/d")
        tx.create("/e", memoryview(b"3"), ephemeral=True)
        tx.delete("/f")
        tx.delete("/", 7)
        assert leader.committed == []
    assert leader.committed == [
        [
            ("check", "/a", 4),
            ("set_data", "/b", b"1", None),
            ("set_data", "/c", b"2", 0),
            ("create", "/d", b"", False),
            ("create", "/e", b"3", True),
            ("delete", "/f", None),
            ("delete", "/", 7),
        ]
    ]


def test_without_its_candidate_a_leadership_is_fenced_and_ended(leader: Leader) -> None:
    leader.stands = False
    with pytest.raises(Fenced, match="our candidate c is gone") as caught:
        set_one(leader)
    refusal = caught.value
    assert (refusal.store, refusal.domain) == ("zookeeper", leader.path)
    assert (refusal.token, refusal.mark, leader.ends) == (leader.token, None, ["fenced"])


def set_one(leader: Leader) -> Transaction:
    with ZnodeFence(leader).transaction() as tx:
        tx.set_data("/b", b"1")
    return tx


def test_who_leads_no_more_gets_no_transaction(leader: Leader) -> None:
    leader.lease = 0.0
    with pytest.raises(LeadershipLost), ZnodeFence(leader).transaction():
        pytest.fail("the block was entered")


def test_a_transaction_that_outlives_its_lease_is_not_sent(leader: Leader) -> None:
    def overstay() -> None:
        with ZnodeFence(leader).transaction() as tx:
            tx.set_data("/b", b"1")
            leader.lease = 0.0

    with pytest.raises(LeadershipLost):
        overstay()
    assert leader.timeouts == []


def test_an_error_in_the_block_sends_nothing(leader: Leader) -> None:
    def stumble() -> None:
        with ZnodeFence(leader).transaction() as tx:
            tx.set_data("/b", b"1")
            raise KeyError

    with pytest.raises(KeyError):
        stumble()
    assert leader.timeouts == []


def test_an_empty_transaction_asks_nobody(leader: Leader) -> None:
    with ZnodeFence(leader).transaction():
        pass
    assert leader.timeouts == []


def test_outside_of_its_block_a_transaction_takes_nothing(leader: Leader) -> None:
    tx = set_one(leader)
    before = ZnodeFence(leader).transaction()
    for transaction in (tx, before):
        with pytest.raises(Misuse, match="not open"):
            transaction.set_data("/b", b"2")
    assert len(leader.committed) == 1


def test_nobody_waits_longer_than_the_lease(leader: Leader) -> None:
    leader.lease = 3.0
    for timeout in (1.0, 5.0):
        with ZnodeFence(leader, timeout=timeout).transaction() as tx:
            tx.check("/a")
    assert leader.timeouts == [1.0, 3.0]


@pytest.mark.parametrize("claimant", [make_token(5), FakeBearer(make_token(5)), None])
def test_who_cannot_commit_is_refused(claimant: Any) -> None:
    with pytest.raises(InvalidArgument, match="leadership"):
        ZnodeFence(claimant)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), "5", None])
def test_a_bad_timeout_is_refused(leader: Leader, timeout: Any) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        ZnodeFence(leader, timeout=timeout)


@pytest.mark.parametrize(
    "path", ["", "config", "/a/", "//a", "/a//b", "/a/./b", "/..", "/a\0", "/a\n", b"/a", None]
)
def test_a_bad_path_is_refused_where_it_is_given(leader: Leader, path: Any) -> None:
    """A relative one kazoo would take, and put a slash before it."""
    with ZnodeFence(leader).transaction() as tx:
        calls = tx.check, tx.delete, tx.create, lambda where: tx.set_data(where, b"")
        for call in calls:
            with pytest.raises(InvalidArgument, match="path"):
                call(path)
    assert leader.timeouts == []


@pytest.mark.parametrize("version", [-2, 2**31, 1.0, "1", None])
def test_a_bad_version_is_refused_where_it_is_given(leader: Leader, version: Any) -> None:
    with ZnodeFence(leader).transaction() as tx:
        calls = tx.check, tx.delete, lambda path, at: tx.set_data(path, b"", at)
        for call in calls:
            with pytest.raises(InvalidArgument, match="version"):
                call("/a", version)


def test_text_is_no_data(leader: Leader) -> None:
    with ZnodeFence(leader).transaction() as tx:
        for call in (tx.set_data, tx.create):
            with pytest.raises(InvalidArgument, match="encode text first"):
                call("/a", "text")  # type: ignore[arg-type]  # that is the test
