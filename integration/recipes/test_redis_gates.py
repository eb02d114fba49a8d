"""When nobody is promoted: nobody is eligible, or promotions are paused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.redis_stage import RedisStage

pytestmark = pytest.mark.timeout(600)


def test_h85_nobody_is_eligible_and_the_reason_of_each_is_listed(
    redis_stage: Callable[..., RedisStage],
) -> None:
    """T7. The others are never promoted, and the old primary comes back empty: nobody leads."""
    here = redis_stage(members={"beta": {"candidate": False}, "gamma": {"candidate": False}})
    old = here.primary
    here.crew.kill_host(old)
    until(lambda: here.crew.logged("beta: it is never promoted"), "the coordinator says why")
    here.crew.agents[old].start()
    until(lambda: here.crew.logged(f"{old}: it is not healthy"), "and of the old one")
    reasons = {each.name: each.reason for each in here.crew.promotion.status().verdicts}
    assert reasons.keys() == {"alpha", "beta", "gamma"}
    assert all(reasons.values())
    assert all(node.told("role") == "slave" for node in here.cluster.nodes.values())
    here.check_one_writable()


def test_a_pause_holds_until_it_is_resumed(redis_stage: Callable[..., RedisStage]) -> None:
    """T8. The primary dies meanwhile: nobody follows it, then somebody does at once."""
    here = redis_stage()
    here.crew.promotion.pause("the network is being worked on", by="ada")
    dead = here.primary
    here.crew.kill_host(dead)
    until(lambda: here.crew.logged("paused by 'ada'"), "the coordinator says that it is paused")
    page = here.crew.page
    assert page is not None
    assert page.primary == dead
    here.crew.promotion.resume()
    here.await_another()
    here.bring_back(dead)
    here.check_one_writable()
    here.check_all_equal()
