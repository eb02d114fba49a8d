"""The acts of the MariaDB recipe, called by hand: without an engine, so in any order."""

from __future__ import annotations

import signal
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from election.waiting import until
from recipes.cluster import Cluster
from recipes.mariadb_node import APPLICATION, MariaDBNode

import zkelect
from zkelect import stores
from zkelect.recipes.clock import now
from zkelect.recipes.mariadb import MariaDB, gate
from zkelect.recipes.mariadb.following import Unable
from zkelect.recipes.mariadb.intake import Unsound
from zkelect.recipes.member import Answer, Role
from zkelect.recipes.position import Relation, compare
from zkelect.recipes.resource import NeedsRebuild, NotNow, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.recipes.position import Position
    from zkelect.testing import LocalEnsemble

pytestmark = pytest.mark.timeout(120)

Servers = dict[str, MariaDB]
_READ_ONLY = 1290
_LOST = (2006, 2013)


def soon() -> float:
    return now() + 30


@pytest.fixture
def cluster() -> Iterator[Cluster[MariaDBNode]]:
    with Cluster(MariaDBNode) as made:
        yield made


@pytest.fixture
def crown(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[[MariaDB], Position]]:
    """Have a server be the primary, with a leadership of its own, as the engine does."""
    with zkelect.connect(zookeeper.hosts) as session:

        def crowned(server: MariaDB) -> Position:
            with zkelect.Election(session, path).campaign() as leadership:
                server.promote(soon())
                server.verify(soon())
                server.claim(leadership)
                return server.open(soon())

        yield crowned


@pytest.fixture
def servers(
    cluster: Cluster[MariaDBNode], crown: Callable[[MariaDB], Position]
) -> Iterator[Servers]:
    made = {
        name: MariaDB(node.member(), node.placed(), domain="acts")
        for name, node in cluster.nodes.items()
    }
    opened = crown(made["alpha"])
    for each in (made["beta"], made["gamma"]):
        each.follow(made["alpha"].member, opened, soon())
        catch_up(each, opened)
    try:
        yield made
    finally:
        for each in made.values():
            each.close()


def position_of(server: MariaDB) -> Position:
    position = server.observe().position
    assert position is not None
    return position


def catch_up(server: MariaDB, position: Position) -> None:
    until(lambda: compare(position_of(server), position) is Relation.EQUAL, "it has that")


def write(node: MariaDBNode, *numbers: int) -> None:
    with node.client() as client:
        for number in numbers:
            client.write(number)


def hand_over(servers: Servers, old: str, new: str) -> Position:
    """Demote in good order, and freeze the next one at what was written last."""
    handed = servers[old].demote(planned=True, deadline=soon())
    assert handed is not None
    servers[new].freeze(handed, soon())
    return handed


def refusal(act: Callable[[], Any]) -> int:
    """Return the number of the error with which the server refuses it."""
    with pytest.raises(pymysql.Error) as caught:
        act()
    return int(caught.value.args[0])


# --- a planned switch ---------------------------------------------------------------------------


def test_a_planned_switch_moves_every_row_and_the_old_primary_follows(
    cluster: Cluster[MariaDBNode], servers: Servers, crown: Callable[[MariaDB], Position]
) -> None:
    write(cluster["alpha"], 1, 2, 3)
    handed = hand_over(servers, "alpha", "beta")
    opened = crown(servers["beta"])
    assert compare(handed, opened) is Relation.BEHIND
    for name in ("alpha", "gamma"):
        servers[name].follow(servers["beta"].member, opened, soon())
    write(cluster["beta"], 4)
    for node in cluster.nodes.values():
        until(lambda node=node: node.written() == {1, 2, 3, 4}, f"{node.name} has all")  # type: ignore[misc]  # mypy: a default of a lambda
    roles = {name: server.observe().role for name, server in servers.items()}
    assert roles == {"alpha": Role.REPLICA, "beta": Role.PRIMARY, "gamma": Role.REPLICA}
    assert len({str(position_of(server)) for server in servers.values()}) == 1


def test_each_act_asked_for_again_changes_nothing(
    cluster: Cluster[MariaDBNode], servers: Servers, crown: Callable[[MariaDB], Position]
) -> None:
    write(cluster["alpha"], 1)
    alpha, beta = servers["alpha"], servers["beta"]
    handed = alpha.demote(planned=True, deadline=soon())
    assert alpha.demote(planned=True, deadline=soon()) == handed
    assert alpha.demote(planned=False, deadline=soon()) == handed
    assert beta.freeze(handed, soon()) == beta.freeze(handed, soon()) == handed
    assert beta.catch_up(soon()) == handed
    assert beta.promote(soon()) == beta.promote(soon()) == beta.verify(soon())
    assert compare(handed, beta.verify(soon())) is Relation.BEHIND
    opened = crown(beta)
    with closing(cluster["beta"].connect(APPLICATION)) as client:
        assert beta.promote(soon()) == opened
        assert beta.open(soon()) == opened
        client.ping(reconnect=False)
    alpha.follow(beta.member, opened, soon())
    before = cluster["alpha"].status()
    alpha.follow(beta.member, opened, soon())
    assert cluster["alpha"].status()["Master_Port"] == before["Master_Port"]


def test_a_claim_made_again_by_the_same_leadership_begins_no_second_branch(
    servers: Servers, zookeeper: LocalEnsemble, path: str
) -> None:
    hand_over(servers, "alpha", "beta")
    beta = servers["beta"]
    beta.promote(soon())
    with (
        zkelect.connect(zookeeper.hosts) as session,
        zkelect.Election(session, path).campaign() as leadership,
    ):
        beta.claim(leadership)
        history = position_of(beta).history
        beta.claim(leadership)
        assert position_of(beta).history == history


# --- who may write ----------------------------------------------------------------------------


def test_a_demoted_server_commits_nothing_that_was_begun_before(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    with closing(cluster["alpha"].connect(APPLICATION, autocommit=False)) as client:
        client.cursor().execute("insert into test.written values (1)")
        servers["alpha"].demote(planned=True, deadline=soon())
        assert refusal(client.commit) in _LOST
    assert refusal(lambda: write(cluster["alpha"], 2)) == _READ_ONLY
    assert cluster["alpha"].written() == set()


@pytest.mark.parametrize("planned", [True, False])
def test_a_statement_that_runs_does_not_hold_a_demotion_up(
    cluster: Cluster[MariaDBNode], servers: Servers, *, planned: bool
) -> None:
    node = cluster["alpha"]
    with closing(node.connect(APPLICATION, read_timeout=60)) as client:
        slow = "insert into test.written select 7 + sleep(30)"
        thread = threading.Thread(target=lambda: refusal(lambda: client.cursor().execute(slow)))
        thread.start()
        running = "select count(*) from information_schema.processlist where state = 'User sleep'"
        until(lambda: node.ask(running) == 1, "the statement runs")
        servers["alpha"].demote(planned=planned, deadline=soon())
        thread.join()
    assert servers["alpha"].observe().role is Role.DEMOTED
    assert node.written() == set()


def test_a_server_that_does_not_obey_is_killed_and_comes_back_closed(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    write(cluster["alpha"], 1)
    before = cluster["alpha"].pid
    cluster["alpha"].signal(signal.SIGSTOP)
    position = servers["alpha"].demote(planned=False, deadline=soon())
    assert position is not None
    assert cluster["alpha"].pid != before
    assert refusal(lambda: write(cluster["alpha"], 2)) == _READ_ONLY
    assert servers["alpha"].observe().role is Role.DEMOTED


def test_a_promoted_server_takes_the_claim_and_no_other_write_before_it_is_open(
    cluster: Cluster[MariaDBNode], servers: Servers, zookeeper: LocalEnsemble, path: str
) -> None:
    """Who was connected before the claim is disconnected, and nobody is left read-only."""
    handed = hand_over(servers, "alpha", "beta")
    beta, node = servers["beta"], cluster["beta"]
    with closing(node.connect(APPLICATION)) as early:
        promised = beta.promote(soon())
        assert refusal(lambda: write(node, 1)) == _READ_ONLY
        with (
            zkelect.connect(zookeeper.hosts) as session,
            zkelect.Election(session, path).campaign() as leadership,
        ):
            beta.claim(leadership)
            assert refusal(lambda: early.ping(reconnect=False)) in _LOST
            assert refusal(lambda: write(node, 1)) == _READ_ONLY
            token = node.ask("select token from zkelect.zkelect_fence where domain = 'acts'")
            assert token == str(leadership.token)
    claimed = position_of(beta)
    assert claimed.history == promised.history, "the page has the branch, where it began"
    assert claimed.offset == handed.offset + 1, "the claim and the promotion are one transaction"
    assert claimed.history[-1].start == handed.offset
    beta.open(soon())
    write(node, 1)


def test_while_the_claim_is_made_a_session_begins_read_only(
    cluster: Cluster[MariaDBNode],
    servers: Servers,
    zookeeper: LocalEnsemble,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And whoever came then is disconnected when it is opened, or would stay so."""
    hand_over(servers, "alpha", "beta")
    refused, came = [], []

    def claim(*args: Any, **options: Any) -> None:
        came.append(cluster["beta"].connect(APPLICATION))
        refused.append(refusal(lambda: write(cluster["beta"], 1)))
        real(*args, **options)

    real = stores.SqlFence.claim
    monkeypatch.setattr(stores.SqlFence, "claim", claim)
    servers["beta"].promote(soon())
    with (
        zkelect.connect(zookeeper.hosts) as session,
        zkelect.Election(session, path).campaign() as leadership,
    ):
        servers["beta"].claim(leadership)
    assert refused == [1792]  # "Cannot execute statement in a READ ONLY transaction"
    servers["beta"].open(soon())
    assert refusal(lambda: came[0].ping(reconnect=False)) in _LOST
    write(cluster["beta"], 1)


def test_a_role_for_which_read_only_does_not_hold_is_told(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    """It is not among the accounts that information_schema lists."""
    cluster["beta"].ask("set statement sql_log_bin = 0 for create role deputies")
    servers["beta"].check()
    cluster["beta"].ask(
        "set statement sql_log_bin = 0 for grant read_only admin on *.* to deputies"
    )
    with pytest.raises(Unfit, match="deputies may write"):
        servers["beta"].check()


def test_an_account_that_is_let_in_nowhere_is_told_at_once(cluster: Cluster[MariaDBNode]) -> None:
    node = cluster["beta"]
    with closing(MariaDB(node.member(), node.placed(password="wrong"), domain="acts")) as server:
        with pytest.raises(Unfit, match="Access denied"):
            server.check()
        assert server.observe().role is Role.UNKNOWN


def test_a_claim_that_is_cut_off_leaves_nobody_read_only(
    cluster: Cluster[MariaDBNode],
    servers: Servers,
    zookeeper: LocalEnsemble,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The session of a replica's applier would be, too."""
    hand_over(servers, "alpha", "beta")
    beta, node = servers["beta"], cluster["beta"]
    beta.promote(soon())
    monkeypatch.setattr(stores.SqlFence, "claim", fail)
    with (
        zkelect.connect(zookeeper.hosts) as session,
        zkelect.Election(session, path).campaign() as leadership,
        pytest.raises(NotNow, match="cut off"),
    ):
        beta.claim(leadership)
    assert node.ask("select @@global.tx_read_only") == 0
    assert node.ask("select @@global.read_only") == 1


def test_a_claim_whose_lease_is_over_opens_nothing(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    """Sessions have been disconnected by then, which takes its time."""
    hand_over(servers, "alpha", "beta")
    with (
        pytest.raises(NotNow, match="cut off"),
        gate.ajar(cluster["beta"].placed(), fail, soon()),
    ):
        pytest.fail("it was opened")
    assert cluster["beta"].ask("select @@global.tx_read_only + 2 * @@global.read_only") == 2


def test_a_server_whose_agent_died_at_the_claim_follows(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    servers["beta"].freeze(None, soon())
    cluster["beta"].ask("set global tx_read_only = on")
    servers["beta"].follow(servers["alpha"].member, None, soon())
    write(cluster["alpha"], 1)
    until(lambda: cluster["beta"].written() == {1}, "it applies")


def fail(*_: object, **__: object) -> None:
    raise NotNow("cut off")


# --- positions --------------------------------------------------------------------------------


def test_what_was_written_apart_diverges_and_needs_a_rebuild(
    cluster: Cluster[MariaDBNode], servers: Servers, crown: Callable[[MariaDB], Position]
) -> None:
    for name in ("beta", "gamma"):
        servers[name].freeze(None, soon())
    write(cluster["alpha"], 1, 2)
    frozen = position_of(servers["beta"])
    opened = crown(servers["beta"])
    assert compare(frozen, opened) is Relation.BEHIND
    assert compare(position_of(servers["alpha"]), opened) is Relation.DIVERGED
    servers["alpha"].demote(planned=False, deadline=soon())
    with pytest.raises(NeedsRebuild, match="no part of the primary"):
        servers["alpha"].follow(servers["beta"].member, opened, soon())
    assert cluster["alpha"].written() == {1, 2}, "its data are kept"
    assert refusal(lambda: write(cluster["alpha"], 3)) == _READ_ONLY
    assert servers["alpha"].observe().role is Role.DEMOTED
    servers["gamma"].follow(servers["beta"].member, opened, soon())


def test_a_follower_that_is_killed_counts_what_it_has_applied(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    write(cluster["alpha"], *range(20))
    catch_up(servers["beta"], position_of(servers["alpha"]))
    cluster["beta"].kill()
    assert servers["beta"].observe().role is Role.STOPPED
    assert servers["beta"].freeze(None, soon()) == position_of(servers["alpha"])
    assert cluster["beta"].written() == set(range(20))


def test_a_restarted_follower_follows_again_only_when_it_is_told_to(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    cluster["beta"].kill()
    cluster["beta"].start()
    assert servers["beta"].observe().role is Role.DEMOTED
    servers["beta"].follow(servers["alpha"].member, None, soon())
    assert servers["beta"].observe().role is Role.REPLICA


def test_a_frozen_follower_has_applied_all_that_it_was_sent(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    """What is only received is thrown away when replication begins anew."""
    node = cluster["beta"]
    with closing(node.connect(autocommit=False)) as blocker:
        blocker.cursor().execute("insert into test.written values (1)")
        write(cluster["alpha"], 1)
        until(lambda: servers["beta"].observe().behind == 1, "it is sent, and cannot be applied")
        with pytest.raises(NotNow, match="applied"):
            servers["beta"].freeze(None, now() + 1)
        write(cluster["alpha"], 2)
        blocker.rollback()
    position = servers["beta"].freeze(None, soon())
    assert node.written() == {1}
    assert compare(position, position_of(servers["alpha"])) is Relation.BEHIND


def test_what_somebody_wrote_into_a_replica_makes_it_no_candidate(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    """FLUSH is written to the binary log of a server that is read_only."""
    cluster["beta"].ask("flush tables")
    seen = servers["beta"].observe()
    assert not seen.healthy
    assert "is not the primary's" in seen.detail
    with pytest.raises(Unsound, match="FLUSH"):
        servers["beta"].freeze(None, soon())
    with pytest.raises(NeedsRebuild, match="FLUSH"):
        servers["beta"].follow(servers["alpha"].member, None, soon())


def test_a_server_made_anew_from_a_dump_stands_where_the_primary_does(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    write(cluster["alpha"], 1, 2)
    cluster["beta"].rebuild(cluster["alpha"])
    assert position_of(servers["beta"]) == position_of(servers["alpha"])
    servers["beta"].follow(servers["alpha"].member, None, soon())
    write(cluster["alpha"], 3)
    until(lambda: cluster["beta"].written() == {1, 2, 3}, "it follows")


def test_a_follower_that_lacks_what_the_primary_has_deleted_needs_a_rebuild(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    alpha = cluster["alpha"]
    servers["beta"].freeze(None, soon())
    write(alpha, 1)
    catch_up(servers["gamma"], position_of(servers["alpha"]))
    for _ in range(2):
        alpha.ask("flush local binary logs")
    servers["gamma"].freeze(None, soon())
    last = alpha.ask("show master status")
    until(lambda: alpha.count_followers() == 0, "nobody reads there")
    alpha.ask(f"purge binary logs to '{last}'")
    with pytest.raises(NeedsRebuild, match="1236"):
        servers["beta"].follow(servers["alpha"].member, None, soon())


# --- asking others ------------------------------------------------------------------------------


def test_members_tell_of_each_other_whether_they_take_writes(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    ask = servers["beta"].reach
    assert ask(servers["alpha"].member) is Answer.YES
    assert ask(servers["gamma"].member) is Answer.NO
    cluster["alpha"].kill()
    assert ask(servers["alpha"].member) is Answer.NO
    stranger = MariaDB(
        cluster["beta"].member(), cluster["beta"].placed(user="nobody"), domain="acts"
    )
    assert stranger.reach(servers["gamma"].member) is Answer.UNKNOWN


@pytest.mark.parametrize("option", ["account lock", "with max_queries_per_hour 1"])
def test_a_server_that_refuses_to_answer_may_take_writes(
    cluster: Cluster[MariaDBNode], servers: Servers, option: str
) -> None:
    cluster["gamma"].ask(f"create user barred@'%' {option}")
    asking = MariaDB(cluster["beta"].member(), cluster["beta"].placed(user="barred"), domain="acts")
    assert asking.reach(servers["gamma"].member) is Answer.UNKNOWN


def test_one_that_is_not_let_in_says_why_it_does_not_follow(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    servers["beta"].freeze(None, soon())
    wrong = MariaDB(
        cluster["beta"].member(), cluster["beta"].placed(replication_password="x"), domain="acts"
    )
    with pytest.raises(NotNow, match=r"1045: .*Access denied"):
        wrong.follow(servers["alpha"].member, None, soon())


def test_without_a_fence_nobody_can_tell_that_another_member_is_off(servers: Servers) -> None:
    assert servers["beta"].fence(servers["alpha"].member, soon()) is Answer.UNKNOWN


def test_two_members_with_one_server_id_are_told(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    cluster["beta"].ask(f"set global server_id = {cluster['alpha'].port}")
    servers["beta"].freeze(None, soon())
    with pytest.raises(Unable, match="server_id"):
        servers["beta"].follow(servers["alpha"].member, None, soon())


# --- the dead-man's switch ------------------------------------------------------------------------


def test_the_server_is_killed_at_the_deadline_that_was_told_last(
    cluster: Cluster[MariaDBNode], servers: Servers
) -> None:
    servers["alpha"].arm(now() + 300)
    servers["alpha"].arm(now() + 0.5)
    until(lambda: cluster["alpha"].pid is None, "it is killed")
    cluster["alpha"].start()
    assert refusal(lambda: write(cluster["alpha"], 1)) == _READ_ONLY
