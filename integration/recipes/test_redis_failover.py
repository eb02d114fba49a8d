"""The primary is lost: one other is promoted, the most advanced, and never two take writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.redis_stage import RedisStage

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("min_replicas", [0, 1])
def test_h81_the_most_advanced_is_promoted_each_time_the_primary_is_killed(
    redis_stage: Callable[..., RedisStage], times: Callable[..., int], min_replicas: int
) -> None:
    """T1. Under a writer at full speed, with one replica made to lag; what is lost is counted."""
    here = redis_stage(place={"min_replicas": min_replicas, "max_lag": 2})
    lost: set[int] = set()
    for _ in range(times(3, 20)):
        laggard, other = sorted(node.name for node in here.cluster.others(here.primary))
        here.hold_back(laggard)
        here.writer.wait_for(100)
        dead = here.primary
        here.crew.kill_host(dead)
        here.crew.agents[laggard].resume()
        assert here.await_another() == other
        lost.update(here.lost_rows())
        here.bring_back(dead)
    pauses = ", ".join(f"{each:.2f} s" for each in here.writer.pauses())
    print(f"confirmed {len(here.writer.confirmed)}, lost {len(lost)}, pauses {pauses}")
    here.check_one_writable()
    here.check_all_equal()
