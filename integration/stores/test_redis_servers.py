"""Redis servers that lose the mark, and those that cannot keep one: H56, H63."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from servers.redis import RedisServer

from zkelect.errors import Fenced, FenceStateLost, InvalidArgument, RequestFailed, UnfitStore
from zkelect.stores.redis import RedisFence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stores.bearers import FakeBearer

    MakeBearer = Callable[..., FakeBearer]


class Address:
    """A name that leads to the primary of the moment, as a Sentinel or a DNS entry does."""

    def __init__(self, server: RedisServer) -> None:
        self.client = Redis(host="127.0.0.1", port=server.port, retry=Retry(NoBackoff(), 0))

    def lead_to(self, server: RedisServer) -> None:
        pool = self.client.connection_pool
        pool.disconnect()
        pool.connection_kwargs["port"] = server.port
        pool.reset()


@pytest.fixture
def primary() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def replica(primary: RedisServer) -> Iterator[RedisServer]:
    with RedisServer() as server:
        server.follow(primary)
        yield server


@pytest.fixture
def address(primary: RedisServer) -> Iterator[Address]:
    made = Address(primary)
    yield made
    made.client.close()


@pytest.fixture
def fence(address: Address) -> RedisFence:
    return RedisFence(address.client, domain="d")


def fenced_out(fence: RedisFence, leader: FakeBearer) -> None:
    """Every way in is told that the mark may be lost; nothing is written."""
    with pytest.raises(FenceStateLost):
        fence.set(leader, "k", "late")
    with pytest.raises(FenceStateLost):
        fence.claim(leader)
    with pytest.raises(FenceStateLost):
        fence.set(leader.token, "k", "late, by the bare token")


# --- H56: the mark is lost -------------------------------------------------------------------


def test_h56_after_flushall_everybody_is_told(
    fence: RedisFence, address: Address, bearer: MakeBearer, primary: RedisServer
) -> None:
    leader, new = bearer(5), bearer(6)
    fence.claim(leader, initialize=True)
    primary.ask("FLUSHALL")
    elsewhere = RedisFence(address.client, domain="d")
    for asked in (fence, elsewhere):
        fenced_out(asked, leader)
        fenced_out(asked, new)
    assert (primary.ask("DBSIZE"), leader.ends) == (0, [])
    fence.claim(new, initialize=True)
    fence.set(new, "k", "v")
    with pytest.raises(Fenced):
        elsewhere.set(leader, "k", "late")


def test_h56_who_lost_its_mark_does_not_begin_again_with_the_same_token(
    fence: RedisFence, bearer: MakeBearer, primary: RedisServer
) -> None:
    fence.claim(bearer(5), initialize=True)
    primary.ask("FLUSHALL")
    with pytest.raises(FenceStateLost):
        fence.claim(bearer(5), initialize=True)


def test_h56_nobody_passes_on_an_older_replica(
    fence: RedisFence,
    address: Address,
    bearer: MakeBearer,
    primary: RedisServer,
    replica: RedisServer,
) -> None:
    """The stale leader's mark survived there, the successor's claim did not."""
    stale, successor = bearer(5), bearer(6)
    its_own, fresh = (RedisFence(address.client, domain="d") for _ in range(2))
    its_own.claim(stale, initialize=True)
    its_own.set(stale, "k", "in time")
    replica.wait_replayed(primary)
    replica.promote()  # cut off from the primary, where the successor claims
    fence.claim(successor)
    fence.set(successor, "k", "lost")
    primary.kill()
    address.lead_to(replica)
    for asked in (fence, its_own, fresh):
        fenced_out(asked, stale)
        fenced_out(asked, successor)
    assert replica.ask("GET", "k") == "in time"
    new = bearer(7)
    fence.claim(new, initialize=True)
    fence.set(new, "k", "on checked data")
    with pytest.raises(Fenced):
        its_own.set(stale, "k", "late")


def test_h56_nobody_passes_on_a_primary_that_was_a_replica_meanwhile(
    fence: RedisFence,
    address: Address,
    bearer: MakeBearer,
    primary: RedisServer,
    replica: RedisServer,
) -> None:
    """The same process as before: its run_id is the mark's, its data are another one's."""
    stale, successor = bearer(5), bearer(6)
    its_own, fresh = (RedisFence(address.client, domain="d") for _ in range(2))
    its_own.claim(stale, initialize=True)
    its_own.set(stale, "k", "in time")
    replica.wait_replayed(primary)
    replica.promote()
    fence.claim(successor)
    primary.follow(replica)
    primary.promote()
    status = fence.status()
    assert status is not None
    assert status.token == stale.token
    assert status.origin.startswith(primary.told("server", "run_id"))
    for asked in (fence, its_own, fresh):
        fenced_out(asked, stale)
        fenced_out(asked, successor)
    assert primary.ask("GET", "k") == "in time"


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_h56_a_restart_is_told_whatever_was_kept(bearer: MakeBearer, preamble: str) -> None:
    """With the preamble the former history is kept, too."""
    kept = {"appendonly": "yes", "appendfsync": "always", "aof_use_rdb_preamble": preamble}
    with (
        RedisServer(**kept) as server,
        closing(RedisFence(server.url, domain="d")) as fence,
    ):
        leader, new = bearer(5), bearer(6)
        fence.claim(leader, initialize=True)
        before = fence.status()
        fence.set(leader, "k", "in time")  # what it passed under is what it shows next
        server.kill()
        server.start()
        fenced_out(fence, leader)
        assert (server.ask("GET", "k"), fence.status()) == ("in time", before)
        fence.claim(new, initialize=True)
        fence.set(new, "k", "v")


# --- no false alarm --------------------------------------------------------------------------


def test_a_first_replica_disturbs_nobody(
    fence: RedisFence, address: Address, bearer: MakeBearer, primary: RedisServer
) -> None:
    leader, history = bearer(5), primary.told("replication", "master_replid")
    fence.claim(leader, initialize=True)
    fence.set(leader, "k", "v")
    with RedisServer() as replica:
        replica.follow(primary)
        assert primary.told("replication", "master_replid") != history
        for asked in (fence, RedisFence(address.client, domain="d")):
            asked.set(leader, "k", "v")
    fence.claim(leader)
    fence.claim(bearer(6))


def test_a_promoted_server_that_lost_all_replicas_disturbs_nobody(
    fence: RedisFence,
    address: Address,
    bearer: MakeBearer,
    primary: RedisServer,
    replica: RedisServer,
) -> None:
    leader = bearer(5)
    replica.ask("CONFIG", "SET", "repl-backlog-ttl", "1")
    replica.promote()
    address.lead_to(replica)
    fence.claim(leader, initialize=True)
    history = replica.told("replication", "master_replid")
    until(lambda: replica.told("replication", "master_replid") != history, "a new history")
    for asked in (fence, RedisFence(address.client, domain="d")):
        asked.set(leader, "k", "v")


# --- H63: not fit, found by looking ----------------------------------------------------------


def unfit(fence: RedisFence, leader: FakeBearer, why: str) -> None:
    for initialize in (False, True):
        with pytest.raises(UnfitStore, match=why):
            fence.claim(leader, initialize=initialize)


@pytest.mark.parametrize("read_only", ["yes", "no"])
def test_h63_a_replica_takes_no_claim_and_no_write(
    bearer: MakeBearer,
    fence: RedisFence,
    primary: RedisServer,
    replica: RedisServer,
    read_only: str,
) -> None:
    leader = bearer(5)
    fence.claim(leader, initialize=True)
    replica.ask("CONFIG", "SET", "replica-read-only", read_only)
    replica.wait_replayed(primary)
    with closing(RedisFence(replica.url, domain="d")) as there:
        unfit(there, bearer(6), "role is 'slave'")
        with pytest.raises(UnfitStore, match=r"role is 'slave'"):
            there.set(leader, "k", "v")
        assert there.status() == fence.status()
    assert replica.ask("EXISTS", "k") == 0


def test_h63_a_primary_that_was_demoted_takes_no_write(
    bearer: MakeBearer, fence: RedisFence, primary: RedisServer, replica: RedisServer
) -> None:
    leader = bearer(5)
    fence.claim(leader, initialize=True)
    fence.set(leader, "k", "v")
    replica.wait_replayed(primary)
    replica.promote()
    primary.follow(replica)
    with pytest.raises(UnfitStore, match=r"role is 'slave'"):
        fence.set(leader, "k", "late")
    assert leader.ends == []


def test_h63_a_primary_that_is_about_to_copy_another_one_takes_no_write(
    bearer: MakeBearer, fence: RedisFence, primary: RedisServer
) -> None:
    """Demoted, not synchronized yet, writable: what is written now is thrown away."""
    leader = bearer(5)
    fence.claim(leader, initialize=True)
    fence.set(leader, "k", "v")
    primary.ask("CONFIG", "SET", "replica-read-only", "no")
    primary.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(UnfitStore, match=r"role is 'slave'"):
        fence.set(leader, "k", "late")
    assert primary.ask("GET", "k") == "v"


def test_h63_a_policy_that_may_evict_the_mark_is_refused(
    bearer: MakeBearer, fence: RedisFence, primary: RedisServer
) -> None:
    leader = bearer(5)
    primary.ask("CONFIG", "SET", "maxmemory", "100mb")
    primary.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    unfit(fence, leader, "allkeys-lru may evict the mark")
    primary.ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    fence.claim(leader, initialize=True)
    primary.ask("CONFIG", "SET", "maxmemory", "0")
    primary.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    fence.claim(leader)


def test_h63_keys_in_two_slots_are_refused(bearer: MakeBearer) -> None:
    leader = bearer(5)
    with (
        RedisServer(cluster_enabled="yes") as server,
        closing(RedisFence(server.url, domain="d")) as fence,
    ):
        server.ask("CLUSTER", "ADDSLOTS", *map(str, range(16384)))
        until(lambda: "cluster_state:ok" in server.ask("CLUSTER", "INFO"), "the cluster")
        fence.claim(leader, initialize=True)
        with pytest.raises(InvalidArgument, match=r"key='k'.*\{d\}"):
            fence.set(leader, "k", "v")
        with pytest.raises(InvalidArgument, match="hash slot"):
            fence.delete(leader, fence.key("a"), "b")
        with pytest.raises(InvalidArgument, match="hash slot"):
            fence.script(leader, "return 1", ["{d}", "d{e}"])
        fence.set(leader, fence.key("k"), "v")
        assert server.ask("GET", "{d}:k") == "v"


def test_h63_a_node_that_does_not_serve_the_slot_is_told(bearer: MakeBearer) -> None:
    with (
        RedisServer(cluster_enabled="yes") as server,
        closing(RedisFence(server.url, domain="d")) as fence,
        pytest.raises(RequestFailed, match="claim failed"),
    ):
        fence.claim(bearer(5), initialize=True)


def test_h63_without_a_cluster_any_key_will_do(
    bearer: MakeBearer, fence: RedisFence, primary: RedisServer
) -> None:
    leader = bearer(5)
    fence.claim(leader, initialize=True)
    fence.script(leader, "redis.call('MSET', KEYS[1], 1, KEYS[2], 2)", ["a", "b"])
    assert primary.ask("MGET", "a", "b") == ["1", "2"]


# --- what the server refuses for its own reasons ---------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [("min-replicas-to-write", "1", "NOREPLICAS|replicas"), ("maxmemory", "1", "OOM|maxmemory")],
)
def test_a_server_that_takes_no_writes_is_told(
    bearer: MakeBearer, fence: RedisFence, primary: RedisServer, setting: str, value: str, why: str
) -> None:
    leader = bearer(5)
    fence.claim(leader, initialize=True)
    primary.ask("CONFIG", "SET", setting, value)
    with pytest.raises(RequestFailed, match=why):
        fence.set(leader, "k", "v")
    with pytest.raises(RequestFailed, match=why):
        fence.claim(bearer(6))
    assert (primary.ask("EXISTS", "k"), leader.ends) == (0, [])


def test_a_user_without_info_is_told(bearer: MakeBearer, primary: RedisServer) -> None:
    primary.ask("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-info")
    url = primary.url.replace("redis://", "redis://app:secret@")
    with (
        closing(RedisFence(url, domain="d")) as fence,
        pytest.raises(RequestFailed, match="user who may EVAL"),
    ):
        fence.claim(bearer(5), initialize=True)


def test_a_wrong_password_is_told_and_never_the_password(
    bearer: MakeBearer, primary: RedisServer
) -> None:
    url = primary.url.replace("redis://", "redis://app:guessed@")
    with (
        closing(RedisFence(url, domain="d")) as fence,
        pytest.raises(RequestFailed, match="nothing was sent") as caught,
    ):
        fence.claim(bearer(5))
    assert "guessed" not in str(caught.value)


def test_a_mark_that_is_none_is_told(
    bearer: MakeBearer, fence: RedisFence, primary: RedisServer
) -> None:
    primary.ask("SET", "zkelect:{d}", "5")
    with pytest.raises(RequestFailed, match="reading the mark"):
        fence.claim(bearer(5), initialize=True)
    primary.ask("DEL", "zkelect:{d}")
    primary.ask("RPUSH", "zkelect:{d}", "5")
    with pytest.raises(RequestFailed, match=r"claim failed.*WRONGTYPE"):
        fence.claim(bearer(5), initialize=True)
