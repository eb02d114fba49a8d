"""An old primary that wrote apart comes back: it is healed or refused, and never merged (H82).

Of the contract: each test is run with each kind of servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from election.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.stage import Stage

pytestmark = pytest.mark.timeout(600)


def test_h82_what_an_old_primary_wrote_apart_is_never_merged(
    stage: Callable[..., Stage[Any]], times: Callable[..., int]
) -> None:
    """T5. Its agent died; until its dead-man struck it confirmed numbers that no replica had."""
    here = stage()
    for _ in range(times(1, 5)):
        old = here.primary
        others = here.cluster.others(old)
        for node in others:
            here.hold_back(node.name)
        here.writer.wait_for(50)
        here.crew.agents[old].kill()
        until(lambda: here.writable() == [], "its dead-man has struck")
        for node in others:
            here.crew.agents[node.name].resume()
        here.await_another()
        lost = here.lost_rows()
        assert len(lost) >= 50
        here.crew.agents[old].start()
        here.await_joined()
        assert set(lost).isdisjoint(here.cluster[here.primary].written())
    here.check_one_writable()
    here.check_all_equal()
