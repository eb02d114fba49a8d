"""The coordinator is killed at each phase boundary: the next one completes what was begun (H81)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from recipes.page_watch import PageWatch
from recipes.test_postgres_phases import (
    CHANGING,
    Assassin,
    begin,
    check_promotions,
    check_terms,
    settled,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.redis_stage import RedisStage

    from zkelect.recipes.page import Phase

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("planned", [False, True], ids=["fail-over", "switchover"])
@pytest.mark.parametrize("phase", CHANGING)
def test_h81_the_coordinator_is_killed_at_each_phase(
    redis_stage: Callable[..., RedisStage], phase: Phase, planned: bool
) -> None:
    """T4. Never two promotions with one token, and never two servers that take writes."""
    here = redis_stage()
    first = here.primary
    assassin = Assassin(here, phase)
    with PageWatch(here.crew.board, assassin) as watch:
        before = here.crew.page
        assert before is not None
        begin(here, planned)
        until(lambda: assassin.killed, f"the coordinator is killed at {phase}")
        here.crew.agents[assassin.killed].start()  # as its init system does
        if not planned:
            here.crew.agents[first].start()  # who was killed may be the winner: two are too few
        until(lambda: settled(here, before), "a primary is open again")
        here.crew.wait_following()
        here.primaries.append(here.crew.wait_steady())
    here.writer.wait_for(20)
    check_promotions(watch.pages)
    check_terms(here, watch.pages)
    assert not planned or here.lost_rows() == []
    here.check_all_equal()
