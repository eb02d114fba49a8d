"""ZooKeeper as the guarded store, on a real server: who leads no more writes nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from election.waiting import WITHIN, until
from kazoo.exceptions import BadVersionError, NodeExistsError, NotEmptyError
from kazoo.security import make_acl

import zkelect
from zkelect.session.committing import Batch
from zkelect.session.gateway import Put
from zkelect.stores.znode import ZnodeFence
from zkelect.testing import FaultProxy, LocalEnsemble, expire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Operator
    from election.actor import Actor

    Cast = Callable[..., Actor]


@pytest.fixture
def config(path: str, operator: Operator) -> str:
    """A znode of this test's own: what only the leader may write."""
    where = f"/config-{path.rpartition('/')[2]}"
    operator.kazoo.create(where, b"old")
    return where


@pytest.fixture
def proxy(zookeeper: LocalEnsemble) -> Iterator[FaultProxy]:
    with FaultProxy(zookeeper.hosts) as started:
        yield started
        assert not started.unfired


def write(leadership: zkelect.Leadership, where: str, data: bytes) -> None:
    with ZnodeFence(leadership, timeout=WITHIN).transaction() as tx:
        tx.set_data(where, data)


# --- what a leader does ------------------------------------------------------------------------


def test_a_leader_writes_all_of_it_in_one_commit(
    cast: Cast, config: str, operator: Operator
) -> None:
    leader = cast("a").lead()
    for round_ in range(3):
        with ZnodeFence(leader).transaction() as tx:
            tx.check(config, round_)
            tx.set_data(config, b"new", round_)
            tx.create(f"{config}/{round_}", b"made")
            if round_ > 0:
                tx.delete(f"{config}/{round_ - 1}", 0)
    data, stat = operator.kazoo.get(config)
    children = operator.kazoo.get_children(config)
    assert (data, stat.version, children) == (b"new", 3, ["2"])
    assert operator.kazoo.get(f"{config}/2")[1].czxid == stat.mzxid


def test_ephemeral_ones_go_with_the_session(cast: Cast, config: str, operator: Operator) -> None:
    actor = cast("a")
    leader = actor.lead()
    with ZnodeFence(leader).transaction() as tx:
        tx.create(f"{config}/alive", ephemeral=True)
    made = operator.kazoo.exists(f"{config}/alive")
    assert made is not None and made.ephemeralOwner == leader.session_id
    actor.session.close()
    until(lambda: operator.kazoo.exists(f"{config}/alive") is None, "it went")


def test_many_threads_commit_at_once_each_once(
    cast: Cast, path: str, config: str, operator: Operator
) -> None:
    leader, threads, each = cast("a").lead(), 8, 10
    start = threading.Barrier(threads)

    def add(number: int) -> None:
        start.wait(WITHIN)
        for n in range(each):
            with ZnodeFence(leader, timeout=WITHIN).transaction() as tx:
                tx.create(f"{config}/{number}-{n}")
                tx.set_data(config, b"")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, range(threads)))
    _, stat = operator.kazoo.get(config)
    assert (stat.version, stat.numChildren) == (threads * each, threads * each)
    markers = [n for n in operator.kazoo.get_children(f"{path}.zkelect") if "commit-" in n]
    assert 1 <= len(markers) <= threads


# --- H60: what the server refuses --------------------------------------------------------------


@pytest.mark.parametrize(
    ("culprit", "cause"),
    [
        (lambda tx, where: tx.set_data(where, b"x", 5), BadVersionError),
        (lambda tx, where: tx.create(where), NodeExistsError),
        (lambda tx, where: tx.delete("/elections"), NotEmptyError),
        (lambda tx, where: tx.delete("/elections", 99), BadVersionError),
    ],
)
def test_h60_of_a_transaction_with_a_failed_item_nothing_is_written(
    cast: Cast,
    config: str,
    operator: Operator,
    culprit: Callable[[Any, str], None],
    cause: type[Exception],
) -> None:
    leader = cast("a").lead()

    def commit() -> None:
        with ZnodeFence(leader).transaction() as tx:
            tx.create(f"{config}/before")
            culprit(tx, config)
            tx.create(f"{config}/after")

    with pytest.raises(zkelect.RequestFailed, match="nothing of the transaction") as caught:
        commit()
    assert isinstance(caught.value.__cause__, cause)
    assert operator.kazoo.get_children(config) == []
    assert leader.reason is None
    write(leader, config, b"new")
    assert operator.kazoo.get(config)[0] == b"new"


def test_a_znode_that_we_may_not_write_is_told(cast: Cast, config: str, operator: Operator) -> None:
    leader = cast("a").lead()
    readers = [make_acl("world", "anyone", read=True)]
    operator.kazoo.create(f"{config}/theirs", b"old", acl=readers)
    with pytest.raises(zkelect.PermissionDenied) as caught:
        write(leader, f"{config}/theirs", b"new")
    assert (caught.value.path, caught.value.permission) == (f"{config}/theirs", "write")
    operator.kazoo.set_acls(config, readers)

    def create() -> None:
        with ZnodeFence(leader).transaction() as tx:
            tx.create(f"{config}/ours")

    with pytest.raises(zkelect.PermissionDenied) as caught:
        create()
    assert (caught.value.path, caught.value.permission) == (config, "create")
    assert operator.kazoo.get(f"{config}/theirs")[0] == b"old"


# --- who leads no more ---------------------------------------------------------------------------


def stale_after(
    proxy: FaultProxy, leader: zkelect.Leadership, config: str, harm: Callable[[], None]
) -> BaseException | None:
    """Hold the leader's transaction on its way, checked already; do harm; let it go on."""
    held = proxy.delay_request("multi", path=config)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(write, leader, config, b"stale")
        assert held.wait(WITHIN)
        harm()
        held.release()
        return done.exception(WITHIN)


def test_a_leader_that_was_evicted_between_check_and_write_is_fenced(
    cast: Cast, path: str, config: str, operator: Operator, proxy: FaultProxy
) -> None:
    a, b = cast("a", server=proxy.hosts), cast("b")
    leader = a.lead()
    b.queue()

    def evict() -> None:
        operator.delete(path, leader.node)
        write(b.diary.wait("elected").leadership, config, b"new")

    refusal = stale_after(proxy, leader, config, evict)
    assert isinstance(refusal, zkelect.Fenced)
    assert (refusal.domain, refusal.token) == (path, leader.token)
    assert operator.kazoo.get(config)[0] == b"new"
    assert leader.reason is not None


def test_control_without_the_check_the_stale_write_passes(
    cast: Cast,
    path: str,
    config: str,
    operator: Operator,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unguarded(*_: Any) -> bool:
        with a.session.lock:
            a.session.gateway.multi([Put(path=config, data=b"stale")], lambda _: done.set())
        return done.wait(WITHIN)

    a, b, done = cast("a", server=proxy.hosts), cast("b"), threading.Event()
    leader = a.lead()
    b.queue()
    monkeypatch.setattr(Batch, "commit", unguarded)

    def evict() -> None:
        operator.delete(path, leader.node)
        b.diary.wait("elected")
        operator.kazoo.set(config, b"new")  # as the successor would

    assert stale_after(proxy, leader, config, evict) is None
    assert operator.kazoo.get(config)[0] == b"stale"


def test_a_leader_whose_session_has_expired_writes_nothing(
    cast: Cast, config: str, operator: Operator, proxy: FaultProxy
) -> None:
    """Nobody can know then whether it was committed before: so it is not called refused."""
    a = cast("a", server=proxy.hosts)
    leader = a.lead()
    error = stale_after(proxy, leader, config, lambda: expire(a.session))
    assert isinstance(error, zkelect.RequestFailed)
    assert "may have been committed" in str(error)
    assert operator.kazoo.get(config)[0] == b"old"
    assert leader.wait_lost(WITHIN)
    with pytest.raises(zkelect.LeadershipLost):
        write(leader, config, b"stale")


def test_a_resigned_leader_writes_nothing(cast: Cast, config: str, operator: Operator) -> None:
    a = cast("a")
    leader = a.lead()
    a.election.stop()
    with pytest.raises(zkelect.LeadershipLost):
        write(leader, config, b"stale")
    assert operator.kazoo.get(config)[0] == b"old"


# --- answers that are lost -----------------------------------------------------------------------


def count_up(leadership: zkelect.Leadership, config: str) -> None:
    """Not to be done twice: the second time it would be refused."""
    with ZnodeFence(leadership, timeout=WITHIN).transaction() as tx:
        tx.create(f"{config}/one")
        tx.set_data(config, b"new", 0)


@pytest.mark.parametrize("fault", ["drop_reply", "drop_request", "tear_reply", "tear_request"])
@pytest.mark.parametrize("before", [0, 2])
def test_what_is_lost_with_the_connection_is_committed_exactly_once(
    cast: Cast,
    config: str,
    operator: Operator,
    proxy: FaultProxy,
    fault: str,
    before: int,
) -> None:
    """Before: with a marker that is made yet, or one that is moved on."""
    leader = cast("a", server=proxy.hosts).lead()
    other = f"{config}/other"
    operator.kazoo.create(other)
    for _ in range(before):
        write(leader, other, b"")
    lost = getattr(proxy, fault)("multi", path=config)
    count_up(leader, config)
    assert lost.fired
    data, stat = operator.kazoo.get(config)
    assert (data, stat.version, leader.reason) == (b"new", 1, None)
    write(leader, config, b"next")
    assert operator.kazoo.get(config)[0] == b"next"


def test_an_answer_that_is_lost_twice_is_found_all_the_same(
    cast: Cast, config: str, operator: Operator, proxy: FaultProxy
) -> None:
    leader = cast("a", server=proxy.hosts).lead()
    proxy.drop_reply("multi", path=config, times=2)
    count_up(leader, config)
    assert operator.kazoo.get(config)[1].version == 1


def test_a_lost_answer_of_a_committed_transaction_counts_though_the_candidate_has_gone(
    cast: Cast, path: str, config: str, operator: Operator, proxy: FaultProxy
) -> None:
    """The marker is looked at before the candidate."""
    leader = cast("a", server=proxy.hosts).lead()
    lost = proxy.drop_reply("multi", path=config)
    again = proxy.delay_request("multi", path=config, nth=2)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(count_up, leader, config)
        assert lost.wait(WITHIN)
        assert again.wait(WITHIN)
        operator.delete(path, leader.node)
        again.release()
        done.result(WITHIN)
    assert operator.kazoo.get(config)[0] == b"new"


def test_without_an_answer_in_time_the_error_says_that_it_may_be_done(
    cast: Cast, config: str, operator: Operator, proxy: FaultProxy
) -> None:
    leader = cast("a", server=proxy.hosts, session_timeout=4.0).lead()
    held = proxy.delay_reply("multi", path=config)

    def commit() -> None:
        with ZnodeFence(leader, timeout=0.1).transaction() as tx:
            tx.set_data(config, b"new")

    with pytest.raises(zkelect.RequestFailed, match="may have been committed"):
        commit()
    held.release()
    assert operator.kazoo.get(config)[0] == b"new"
    write(leader, config, b"next")
    assert operator.kazoo.get(config)[0] == b"next"
