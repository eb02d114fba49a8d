"""The acts of the Redis recipe, called by hand: without an engine, so in any order."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import attrs
import pytest
from election.waiting import until
from recipes.cluster import Cluster
from recipes.redis_node import RedisNode
from redis.exceptions import ReadOnlyError, ResponseError

import zkelect
from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer, Role
from zkelect.recipes.position import Relation, compare
from zkelect.recipes.redis import RedisServer
from zkelect.recipes.redis.promoting import Incomplete
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.recipes.position import Position
    from zkelect.testing import LocalEnsemble

pytestmark = pytest.mark.timeout(120)

Servers = dict[str, RedisServer]


def soon() -> float:
    return now() + 30


@pytest.fixture
def cluster() -> Iterator[Cluster[RedisNode]]:
    with Cluster(RedisNode) as made:
        yield made


@pytest.fixture
def servers(cluster: Cluster[RedisNode]) -> Iterator[Servers]:
    made = {
        name: RedisServer(node.member(), node.placed(), domain="acts")
        for name, node in cluster.nodes.items()
    }
    position = made["alpha"].promote(soon())
    made["alpha"].open(soon())
    for each in (made["beta"], made["gamma"]):
        each.follow(made["alpha"].member, position, soon())
    try:
        yield made
    finally:
        for each in made.values():
            each.close()


def position_of(server: RedisServer) -> Position:
    position = server.observe().position
    assert position is not None
    return position


def partial_copies(node: RedisNode) -> tuple[int, int]:
    """Return how many followers it has let continue, and how many full copies it has made."""
    return int(node.told("sync_partial_ok")), int(node.told("sync_full"))


# --- a planned switch ---------------------------------------------------------------------------


def test_a_planned_switch_leaves_what_the_servers_own_failover_leaves(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    """FAILOVER of Redis is the oracle: same data, a branch forked there, nobody copied anew."""
    alpha, beta = cluster["alpha"], cluster["beta"]
    alpha.ask("sadd", "written", 1, 2, 3)
    handed = servers["alpha"].demote(planned=True, deadline=soon())
    assert handed is not None
    servers["beta"].freeze(handed, soon())
    servers["beta"].promote(soon())
    opened = servers["beta"].open(soon())
    ours = [beta.told("master_replid2"), beta.told("role"), alpha.told("role")]
    servers["alpha"].follow(servers["beta"].member, opened, soon())
    assert beta.written() == {1, 2, 3}
    assert partial_copies(beta) == (1, 0)
    before, continued = beta.told("master_replid"), partial_copies(alpha)
    beta.ask("failover", "to", "127.0.0.1", alpha.port)
    until(lambda: alpha.told("role") == "master", "Redis has switched back")
    until(lambda: beta.told("master_link_status") == "up", "beta follows")
    theirs = [alpha.told("master_replid2"), alpha.told("role"), beta.told("role")]
    assert ours[1:] == theirs[1:] == ["master", "slave"]
    assert theirs[0] == before
    assert ours[0] == handed.history[-1].id
    assert alpha.written() == {1, 2, 3}
    partial, full = partial_copies(alpha)
    assert partial > continued[0]
    assert full == continued[1]


def test_writers_are_held_and_then_refused_while_it_is_handed_over(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    """One that waited is told at once, and need not wait for the end of the pause."""
    servers["alpha"].demote(planned=True, deadline=soon())
    with pytest.raises(ReadOnlyError):
        cluster["alpha"].ask("set", "a", "b")
    assert position_of(servers["alpha"]) == position_of(servers["beta"])


def test_nothing_is_handed_over_to_nobody_and_the_writers_go_on(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    for name in ("beta", "gamma"):
        servers[name].freeze(None, soon())
    with pytest.raises(NotNow):
        servers["alpha"].demote(planned=True, deadline=soon())
    assert cluster["alpha"].ask("sadd", "written", 1) == 1


# --- positions ------------------------------------------------------------------------------------


def test_a_follower_behind_the_fork_stands_on_the_same_branch_as_the_others(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    """Redis tells of it where *it* went over: earlier than where the branch forked."""
    servers["gamma"].freeze(None, soon())
    cluster["alpha"].ask("sadd", "written", 1, 2, 3)
    servers["beta"].freeze(servers["alpha"].demote(planned=True, deadline=soon()), soon())
    behind = position_of(servers["gamma"])
    assert compare(behind, position_of(servers["beta"])) is Relation.BEHIND
    servers["beta"].promote(soon())
    opened = servers["beta"].open(soon())
    assert compare(behind, opened) is Relation.BEHIND
    servers["gamma"].follow(servers["beta"].member, opened, soon())
    assert cluster["gamma"].told("second_repl_offset") < cluster["beta"].told("second_repl_offset")
    until(
        lambda: position_of(servers["gamma"]) == position_of(servers["beta"]),
        "it has everything, by its position too",
    )
    again = RedisServer(cluster["gamma"].member(), cluster["gamma"].placed(), domain="acts")
    assert position_of(again).history == opened.history, "an agent that is started anew knows"


def test_what_was_written_apart_diverges(cluster: Cluster[RedisNode], servers: Servers) -> None:
    frozen = servers["beta"].freeze(None, soon())
    cluster["alpha"].ask("sadd", "written", 1)
    servers["beta"].promote(soon())
    opened = servers["beta"].open(soon())
    assert compare(position_of(servers["alpha"]), opened) is Relation.DIVERGED
    assert compare(frozen, opened) is Relation.BEHIND


def test_a_server_without_followers_counts_what_it_writes(cluster: Cluster[RedisNode]) -> None:
    """Redis alone would not, until the first one comes, and then be on another branch."""
    node = cluster["gamma"]
    node.kill()
    node.start()
    server = RedisServer(node.member(), node.placed(), domain="acts")
    opened = server.promote(soon())
    server.open(soon())
    node.ask("sadd", "written", 1)
    after = position_of(server)
    assert compare(after, opened) is Relation.AHEAD
    cluster["beta"].follow(node)
    assert position_of(server).history == opened.history


# --- empty, loading, copying ----------------------------------------------------------------------


def test_h83_a_server_that_is_loading_is_not_promoted(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    node = cluster["beta"]
    node.ask("debug", "populate", 5000)
    node.ask("save")
    node.kill()
    with node.config.open("a") as config:
        config.write("key-load-delay 5000\n")  # microseconds
        config.write("loading-process-events-interval-bytes 1024\n")
    subprocess.run(node.placed().start, check=True)
    until(lambda: "loading" in servers["beta"].observe().detail, "it is seen loading")
    seen = servers["beta"].observe()
    assert (seen.healthy, seen.position) == (False, None)
    for act in (servers["beta"].promote, lambda end: servers["beta"].freeze(None, end)):
        with pytest.raises(Incomplete, match="loading"):
            act(soon())
    assert node.told("role") == "slave"


def test_h83_followers_take_nothing_from_a_server_that_is_restarted_empty(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    cluster["alpha"].ask("sadd", "written", 1)
    until(lambda: cluster["beta"].written() == {1}, "beta has it")
    cluster["alpha"].kill()
    cluster["alpha"].forget()
    cluster["alpha"].start()
    tries = "NOMASTERLINK"
    until(lambda: tries in (cluster["beta"].folder / "log").read_text(), "beta is refused")
    assert cluster["beta"].written() == {1}
    seen = servers["alpha"].observe()
    assert (seen.role, seen.healthy) == (Role.DEMOTED, False)
    assert seen.position is None


def test_a_server_that_is_restarted_with_what_it_saved_stands_where_it_did(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    cluster["alpha"].ask("sadd", "written", 1)
    until(lambda: cluster["beta"].written() == {1}, "beta has it")
    before = servers["beta"].freeze(None, soon())
    cluster["beta"].ask("save")
    cluster["beta"].kill()
    cluster["beta"].start()
    seen = servers["beta"].observe()
    assert (seen.role, seen.healthy, seen.position) == (Role.DEMOTED, True, before)


def restart_with_less(cluster: Cluster[RedisNode]) -> None:
    """Restart the primary with what it had saved, which is less than a follower has."""
    cluster["alpha"].ask("sadd", "written", 1)
    cluster["alpha"].ask("save")
    cluster["alpha"].ask("sadd", "written", 2)
    until(lambda: cluster["beta"].written() == {1, 2}, "beta has more")
    cluster["alpha"].kill()
    cluster["alpha"].start()


def test_h83_a_primary_that_is_restarted_does_not_go_on_by_itself(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    """With what it had saved, which may be less than it has confirmed; it counts by that."""
    restart_with_less(cluster)
    seen = servers["alpha"].observe()
    assert (seen.role, seen.healthy) == (Role.DEMOTED, False)
    assert "started anew" in seen.detail
    position = servers["alpha"].demote(planned=False, deadline=soon())
    assert position is not None
    assert compare(position, position_of(servers["beta"])) is Relation.BEHIND
    assert servers["alpha"].observe().healthy


def test_h83_a_planned_change_is_not_measured_by_what_a_restarted_primary_has_left(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    """Nor is that opened again, before it was compared with what the others have."""
    restart_with_less(cluster)
    for act in (
        lambda end: servers["alpha"].demote(planned=True, deadline=end),
        servers["alpha"].promote,
    ):
        with pytest.raises(Incomplete, match="started anew"):
            act(soon())
    assert servers["alpha"].observe().role is Role.DEMOTED
    assert cluster["beta"].written() == {1, 2}


def test_a_primary_that_was_demoted_is_promoted_again_as_long_as_it_runs(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    """When its lease ran out, or a planned change is taken back."""
    for planned in (True, False):
        cluster["alpha"].ask("sadd", "written", 1)
        servers["alpha"].demote(planned=planned, deadline=soon())
        position = servers["alpha"].promote(soon())
        servers["alpha"].open(soon())
        servers["beta"].follow(servers["alpha"].member, position, soon())
    assert cluster["alpha"].written() == {1}


def test_a_copy_that_was_begun_and_not_ended_is_no_position(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    cluster["alpha"].ask("config", "set", "rdb-key-save-delay", 10000)
    cluster["alpha"].ask("debug", "populate", 1000)
    node = cluster["beta"]
    node.kill()
    node.forget()
    node.start()
    node.ask("replicaof", "127.0.0.1", cluster["alpha"].port)
    until(lambda: node.told("master_sync_in_progress") == "1", "it is being copied")
    with pytest.raises(Incomplete, match="full copy"):
        servers["beta"].freeze(None, soon())


# --- the lock and the first write -----------------------------------------------------------------


def test_a_promoted_server_takes_the_claim_and_no_other_write_before_it_is_open(
    cluster: Cluster[RedisNode], servers: Servers, zookeeper: LocalEnsemble, path: str
) -> None:
    beta = cluster["beta"]
    servers["beta"].freeze(servers["alpha"].demote(planned=True, deadline=soon()), soon())
    beta.ask("config", "set", "min-replicas-to-write", 0)  # as after a start
    servers["beta"].promote(soon())
    for words in (("set", "a", "b"), ("eval", "return redis.call('set', 'a', 'b')", 0)):
        with pytest.raises(ResponseError, match="NOREPLICAS"):
            beta.ask(*words)
    with (
        zkelect.connect(zookeeper.hosts) as session,
        zkelect.Election(session, path).campaign() as leadership,
    ):
        servers["beta"].claim(leadership)
        assert str(leadership.token) in beta.ask("get", "zkelect:{acts}")
        with pytest.raises(ResponseError, match="NOREPLICAS"):
            beta.ask("set", "a", "b")
        servers["beta"].open(soon())
        servers["beta"].claim(leadership)
    assert beta.ask("get", "a") is None


def test_with_min_replicas_an_open_primary_confirms_nothing_alone(
    cluster: Cluster[RedisNode],
) -> None:
    node = cluster["alpha"]
    place = node.placed(min_replicas=1, max_lag=1)
    server = RedisServer(node.member(), place, domain="acts")
    server.promote(soon())
    server.open(soon())
    assert node.ask("sadd", "written", 1) == 1
    for other in cluster.others("alpha"):
        other.signal(signal.SIGSTOP)

    def refused() -> bool:
        try:
            node.ask("sadd", "written", 2)
        except ResponseError as error:
            return "NOREPLICAS" in str(error)
        return False

    until(refused, "it refuses, as nobody reports")


# --- the dead-man ---------------------------------------------------------------------------------


def test_the_dead_man_has_a_primary_follow_nobody_with_all_that_it_has(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    cluster["alpha"].ask("sadd", "written", 1)
    servers["alpha"].observe()
    servers["alpha"].arm(now() + 0.2)
    until(lambda: cluster["alpha"].told("role") == "slave", "it is demoted")
    assert cluster["alpha"].written() == {1}
    assert servers["alpha"].observe().role is Role.DEMOTED


def test_the_dead_man_kills_a_server_that_does_not_obey(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    servers["alpha"].observe()
    cluster["alpha"].signal(signal.SIGSTOP)
    servers["alpha"].arm(now() + 0.2)
    until(lambda: cluster["alpha"].pid is None, "it is killed")


# --- a server that does not answer ---------------------------------------------------------------


def test_a_primary_that_does_not_answer_is_killed_and_comes_back_as_a_replica(
    cluster: Cluster[RedisNode], servers: Servers
) -> None:
    servers["alpha"].observe()
    old = cluster["alpha"].pid
    cluster["alpha"].forget()
    cluster["alpha"].signal(signal.SIGSTOP)
    assert servers["beta"].reach(servers["alpha"].member) is Answer.NO
    servers["alpha"].demote(planned=False, deadline=soon())
    assert cluster["alpha"].told("process_id") != str(old)
    seen = servers["alpha"].observe()
    assert (seen.role, seen.healthy) == (Role.DEMOTED, False)
    assert "without its data" in seen.detail


def test_what_others_find_at_an_address(cluster: Cluster[RedisNode], servers: Servers) -> None:
    assert servers["beta"].reach(servers["alpha"].member) is Answer.YES
    assert servers["alpha"].reach(servers["beta"].member) is Answer.NO
    nobody = attrs.evolve(servers["gamma"].member, address="127.0.0.1:1")
    assert servers["alpha"].reach(nobody) is Answer.NO
    cluster["alpha"].ask("config", "set", "requirepass", "secret")
    assert servers["beta"].reach(servers["alpha"].member) is Answer.UNKNOWN
