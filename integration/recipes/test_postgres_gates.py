"""When nobody is promoted: nobody is eligible, promotions are paused, or nothing is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from recipes.cluster import Cluster
from recipes.crew import Crew
from recipes.postgres_stage import staged

from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_stage import Stage

pytestmark = pytest.mark.timeout(600)


def test_h85_nobody_is_eligible_and_the_reason_of_each_is_listed(
    stage: Callable[..., Stage],
) -> None:
    """T7. Nobody is promoted, until the old primary is back."""
    here = stage(members={"beta": {"candidate": False}, "gamma": {"candidate": False}})
    old = here.primary
    here.crew.kill_host(old)
    until(lambda: here.crew.logged("beta: it is never promoted"), "the coordinator says why")
    reasons = {each.name: each.reason for each in here.crew.promotion.status().verdicts}
    assert reasons.keys() == {"alpha", "beta", "gamma"}
    assert "not there" in reasons["alpha"]
    assert "never promoted" in reasons["beta"]
    assert "never promoted" in reasons["gamma"]
    page = here.crew.page
    assert page is not None
    assert page.primary == old
    here.crew.agents[old].start()
    here.writer.wait_for(20)
    here.crew.wait_following()
    assert here.lost_rows() == []
    here.check_one_writable()


def test_a_pause_holds_until_it_is_resumed(stage: Callable[..., Stage]) -> None:
    """T8. The primary dies meanwhile: nobody follows it, then somebody does at once."""
    here = stage()
    here.crew.promotion.pause("the network is being worked on", by="ada")
    dead = here.primary
    here.crew.kill_host(dead)
    until(lambda: here.crew.logged("paused by 'ada'"), "the coordinator says that it is paused")
    assert "the network is being worked on" in here.crew.promotion.status().paused
    page = here.crew.page
    assert page is not None
    assert page.primary == dead
    here.crew.promotion.resume()
    here.await_another()
    here.bring_back(dead)
    here.check_one_writable()
    here.check_all_equal()


def test_zookeeper_is_restarted_server_by_server_and_nobody_is_promoted(
    times: Callable[..., int],
) -> None:
    """T9. The writer does not notice."""
    with (
        LocalEnsemble(servers=3, tick_time=0.2) as zookeeper,
        staged(zookeeper, "/cluster", session={"session_timeout": 4.0}) as here,
    ):
        before = here.crew.page
        for _ in range(times(1, 5)):
            for server in zookeeper.servers:
                server.kill()
                server.start()
                zookeeper.wait_ready()
                here.writer.wait_for(100)
        after = here.crew.page
        assert before is not None
        assert after is not None
        assert (after.primary, after.reign) == (before.primary, before.reign)
        assert here.lost_rows() == []
        here.check_one_writable()


def test_a_server_of_another_cluster_is_refused_and_left_alone(
    stage: Callable[..., Stage], zookeeper: LocalEnsemble, path: str
) -> None:
    """A wrong path must not cost a cluster its primary."""
    here = stage()
    with Cluster(["delta"]) as other, Crew(other, zookeeper, path=path) as stray:
        assert stray.agents["delta"].wait_ended() != 0
        assert stray.logged("give it another path")
        assert not other["delta"].ask("select pg_is_in_recovery()")
        other["delta"].ask("create table still_writable ()")
    assert here.crew.primary() == here.primary
