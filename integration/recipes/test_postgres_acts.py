"""The recipe's acts on real servers, one by one: who may write, who follows, who is refused."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from election.waiting import LONG, until
from recipes.acts import follow, resources, soon, switch_over, take_over
from recipes.background import Background
from recipes.cluster import Cluster
from recipes.postgres_node import PostgresNode

from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer, Role
from zkelect.recipes.postgres import Postgres
from zkelect.recipes.postgres.state import read_state
from zkelect.recipes.resource import NeedsRebuild, NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

_MUCH: Final = (
    "insert into rows (text) select repeat(md5(n::text), 40) from generate_series(1, 3000) as n"
)


@pytest.fixture
def cluster() -> Iterator[Cluster[PostgresNode]]:
    with Cluster(PostgresNode) as made:
        made["alpha"].ask("create table rows (id bigint generated always as identity, text text)")
        yield made


@pytest.fixture
def servers(cluster: Cluster[PostgresNode]) -> Iterator[dict[str, Postgres]]:
    with resources(cluster) as made:
        yield made


def write(node: PostgresNode, text: str = "") -> None:
    with node.connect() as connection:
        connection.execute("insert into rows (text) values (%s)", (text,))


def texts(node: PostgresNode) -> list[str]:
    with node.connect() as connection:
        return [text for (text,) in connection.execute("select text from rows order by id")]


def wait_for(node: PostgresNode, text: str) -> None:
    """Wait until a standby shows a row."""
    until(lambda: text in texts(node), f"{text} on {node.name}")


def crash_a_backend(node: PostgresNode) -> None:
    """Kill a server process, so that the postmaster starts all of them anew."""
    with node.connect() as connection:
        row = connection.execute("select pg_backend_pid()").fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select pg_sleep(30)")


# --- who may write -----------------------------------------------------------------------------


def test_a_server_that_is_promoted_is_closed_until_it_is_opened(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    beta = servers["beta"]
    beta.freeze(servers["alpha"].demote(planned=True, deadline=soon()), soon())
    with cluster["beta"].connect() as reader:  # readers go on all the time
        reader.execute("select from rows")
        beta.promote(soon())
        assert beta.observe().role is Role.PRIMARY
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            write(cluster["beta"], "too early")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.execute("insert into rows (text) values ('too early')")
        beta.open(soon())
        reader.execute("insert into rows (text) values ('in time')")
    assert texts(cluster["beta"]) == ["in time"]


def test_each_act_may_be_repeated(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    alpha, beta, gamma = servers.values()
    write(cluster["alpha"], "one")
    final = alpha.demote(planned=True, deadline=soon())
    assert alpha.demote(planned=True, deadline=soon()) == final
    frozen = beta.freeze(final, soon())
    assert beta.freeze(final, soon()) == frozen == final
    assert beta.catch_up(soon()) == beta.catch_up(soon()) == final
    promoted = beta.promote(soon())
    assert len(promoted.history) == 2
    assert beta.promote(soon()).history == beta.verify(soon()).history == promoted.history
    assert beta.open(soon()).history == beta.open(soon()).history == promoted.history
    for each in (alpha, gamma):
        follow(each, beta)
        follow(each, beta)
    write(cluster["beta"], "two")
    for name in ("alpha", "gamma"):
        wait_for(cluster[name], "two")
        assert servers[name].observe().role is Role.REPLICA


@pytest.mark.parametrize("how", ["restarted", "a process crashed", "killed and started"])
def test_a_primary_that_comes_back_by_itself_takes_no_writes(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres], how: str
) -> None:
    alpha = cluster["alpha"]
    if how == "restarted":
        alpha.stop()
        alpha.start()
    elif how == "killed and started":
        alpha.kill()
        alpha.start()
    else:
        crash_a_backend(alpha)
    until(lambda: servers["alpha"].observe().role is not Role.UNKNOWN, "it answers")
    assert servers["alpha"].observe().role is Role.DEMOTED
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        write(alpha)


def test_demoting_at_once_leaves_a_standby_with_all_that_was_committed(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    write(cluster["alpha"], "last")
    before = servers["alpha"].observe().position
    after = servers["alpha"].demote(planned=False, deadline=soon())
    assert after is not None
    assert before is not None
    assert after.history == before.history
    assert after.offset >= before.offset
    assert texts(cluster["alpha"]) == ["last"]
    assert cluster["alpha"].ask("show default_transaction_read_only") == "on"
    assert servers["beta"].reach(servers["alpha"].member) is Answer.NO


def test_the_dead_man_kills_a_frozen_server_by_the_deadline(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    deadline = now() + 1.0
    servers["alpha"].arm(deadline)
    cluster["alpha"].signal(signal.SIGSTOP)
    until(lambda: cluster["alpha"].pid is None, "killed")
    assert now() >= deadline


def test_the_dead_man_outlives_the_agent(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    """An agent that was killed leaves its last deadline behind."""
    agent = os.fork()
    if agent == 0:
        servers["alpha"].arm(now() + 1.0)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(agent, 0)
    until(lambda: cluster["alpha"].pid is None, "killed")


def test_a_later_deadline_replaces_the_earlier_one(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    alpha, beta = cluster["alpha"], cluster["beta"]
    servers["alpha"].arm(now() + 1.0)
    servers["alpha"].arm(now() + 60.0)
    servers["beta"].arm(now() + 1.5)
    until(lambda: beta.pid is None, "the other one is killed")
    assert alpha.pid is not None
    servers["alpha"].disarm()


# --- who is asked directly ---------------------------------------------------------------------


def test_reach_tells_who_takes_writes(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    alpha, beta, gamma = servers.values()
    assert gamma.reach(alpha.member) is Answer.YES
    assert gamma.reach(beta.member) is Answer.NO
    cluster["alpha"].kill()
    assert gamma.reach(alpha.member) is Answer.NO


def test_reach_takes_a_frozen_server_for_one_that_takes_no_writes(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    cluster["alpha"].signal(signal.SIGSTOP)
    assert servers["gamma"].reach(servers["alpha"].member) is Answer.NO
    observed = servers["alpha"].observe()
    cluster["alpha"].signal(signal.SIGCONT)
    assert (observed.role, observed.healthy) == (Role.UNKNOWN, False)


# --- old primaries (H82) -----------------------------------------------------------------------


def test_h82_extra_wal_is_rewound(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    """The old primary wrote what nobody received: it follows without those rows."""
    alpha, beta, gamma = servers.values()
    write(cluster["alpha"], "shared")
    wait_for(cluster["beta"], "shared")
    for standby in (beta, gamma):
        standby.freeze(None, soon())
    write(cluster["alpha"], "extra")
    cluster["alpha"].kill()
    take_over(beta)
    write(cluster["beta"], "new")
    follow(gamma, beta)
    follow(alpha, beta)
    for node in cluster.nodes.values():
        wait_for(node, "new")
        assert texts(node) == ["shared", "new"]
    assert (
        (cluster["alpha"].data / "postgresql.conf")
        .read_text()
        .startswith(f"port = '{cluster['alpha'].port}'")
    ), "the configuration came with the source's data"


def test_h82_an_older_timeline_without_extra_wal_follows(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    alpha, beta, gamma = servers.values()
    gamma.freeze(None, soon())
    write(cluster["alpha"], "one")
    switch_over(alpha, beta)
    switch_over(beta, alpha)
    write(cluster["alpha"], "three")
    follow(gamma, alpha)  # two timelines later
    wait_for(cluster["gamma"], "three")
    position = gamma.observe().position
    assert position is not None
    assert [branch.id for branch in position.history][1:] == ["2", "3"]


@pytest.mark.parametrize("where", ["at another byte", "at the same byte"])
def test_h82_the_same_timeline_number_with_another_history_is_refused(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres], where: str
) -> None:
    """Both standbys were promoted to timeline 2; pg_rewind would see nothing to do."""
    _, beta, gamma = servers.values()
    write(cluster["alpha"], "shared")
    for name in ("beta", "gamma"):
        wait_for(cluster[name], "shared")
    gamma.freeze(None, soon())
    if where == "at another byte":
        write(cluster["alpha"], "only beta has it")
        wait_for(cluster["beta"], "only beta has it")
    cluster["alpha"].kill()
    take_over(gamma)
    write(cluster["gamma"], "of gamma")
    take_over(beta)
    for number in range(100):  # so that it is not told by who has more
        write(cluster["beta"], f"{number}")
    with pytest.raises(NeedsRebuild, match="pg_basebackup"):
        follow(gamma, beta)
    assert texts(cluster["gamma"]) == ["shared", "of gamma"], "merged"
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        write(cluster["gamma"])


def test_h82_a_server_of_another_cluster_is_refused(servers: dict[str, Postgres]) -> None:
    with (
        Cluster(PostgresNode, ["delta"]) as other,
        resources(other) as others,
        pytest.raises(NeedsRebuild),
    ):
        follow(others["delta"], servers["alpha"])


def test_a_rewinding_that_was_interrupted_is_not_begun_again(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    node = cluster["beta"]
    node.place.rewinding.write_text("pg_rewind: connected to server\n")
    with pytest.raises(NeedsRebuild, match=r"connected to server.*pg_basebackup"):
        follow(servers["beta"], servers["alpha"])
    node.place.rewinding.unlink()
    follow(servers["beta"], servers["alpha"])


# --- what a standby takes in -------------------------------------------------------------------


def test_h81_a_standby_that_was_cut_off_within_a_record_catches_up(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    """One that lags is, about every other time: it is sent pages of WAL, and not records."""
    alpha, beta, _ = servers.values()
    done = threading.Event()
    writing = partial(keep_writing, cluster["alpha"], done)
    with Background(writing, writing):
        try:
            until(partial(was_torn, cluster["beta"], beta, alpha), "it was", within=LONG)
        finally:
            done.set()


def keep_writing(node: PostgresNode, done: threading.Event) -> None:
    """Write more than a standby can keep up with."""
    with node.connect() as connection:
        while not done.is_set():
            connection.execute(_MUCH)


def was_torn(node: PostgresNode, server: Postgres, primary: Postgres) -> bool:
    """Cut a standby off, and see it catch up; tell whether that was within a record."""
    follow(server, primary)
    server.freeze(None, soon())
    server.catch_up(soon())
    state = read_state(node.place, soon())
    assert state.replayed is not None
    return state.received is not None and state.received > state.replayed


def test_a_frozen_standby_takes_in_nothing_from_a_primary_that_lives(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    frozen = servers["beta"].freeze(None, soon())
    write(cluster["alpha"], "late")
    wait_for(cluster["gamma"], "late")
    assert servers["beta"].observe().position == frozen
    assert cluster["beta"].ask("show primary_conninfo") == "", "it would begin again"


def test_a_frozen_standby_that_is_restarted_stays_frozen(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    frozen = servers["beta"].freeze(None, soon())
    cluster["beta"].stop()
    write(cluster["alpha"], "late")
    assert servers["beta"].freeze(None, soon()) == frozen


def test_received_but_not_replayed_counts(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    cluster["beta"].ask("select pg_wal_replay_pause()")
    write(cluster["alpha"], "unseen")
    wait_for(cluster["gamma"], "unseen")
    both = [servers[name].freeze(None, soon()) for name in ("beta", "gamma")]
    assert both[0] == both[1]
    assert not servers["beta"].observe().healthy
    with pytest.raises(NotNow, match="pg_wal_replay_resume"):
        servers["beta"].catch_up(soon())
    cluster["beta"].ask("select pg_wal_replay_resume()")
    servers["beta"].catch_up(soon())
    assert texts(cluster["beta"]) == ["unseen"]


def test_a_slot_holds_the_wal_of_a_follower_and_goes_with_the_primary(
    cluster: Cluster[PostgresNode],
) -> None:
    servers = {
        name: Postgres(node.member(), node.placed(slots=True), domain="slots")
        for name, node in cluster.nodes.items()
    }
    alpha, beta, gamma = servers.values()
    alpha.promote(soon())
    alpha.open(soon())
    for each in (beta, gamma):
        follow(each, alpha)
    slots = "select string_agg(slot_name, ' ' order by slot_name) from pg_replication_slots"
    assert cluster["alpha"].ask(slots) == "zkelect_beta zkelect_gamma"
    switch_over(alpha, beta)
    follow(gamma, beta)
    assert cluster["beta"].ask(slots) == "zkelect_alpha zkelect_gamma"
    follow(alpha, beta)  # as the engine asks again and again
    assert cluster["alpha"].ask(slots) is None
