"""The primary is lost: one other is promoted, the most advanced, and never two take writes.

Of the contract: each test is run with each kind of servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.node import Node
    from recipes.stage import Stage

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize("safely", [False, True], ids=["asynchronous", "safest"])
def test_h81_the_most_advanced_is_promoted_each_time_the_primary_is_killed(
    stage: Callable[..., Stage[Any]], kind: type[Node], times: Callable[..., int], safely: bool
) -> None:
    """T1. Under a writer at full speed, with one replica made to lag; what is lost is counted."""
    options = kind.safest if safely else {}
    synchronous = options.get("policy", {}).get("synchronous", False)
    here = stage(**options)
    lost: set[int] = set()
    for _ in range(times(3, 20)):
        in_step = here.await_in_step() if synchronous else set()
        laggard, other = choose_laggard(here, in_step)
        here.hold_back(laggard)
        here.writer.wait_for(100)
        here.await_ahead(other, of=laggard)
        dead = here.primary
        here.crew.kill_host(dead)
        here.crew.agents[laggard].resume()
        assert here.await_another() == other
        lost.update(here.lost_rows())
        here.bring_back(dead)
    pauses = ", ".join(f"{each:.2f} s" for each in here.writer.pauses())
    print(f"confirmed {len(here.writer.confirmed)}, lost {len(lost)}, pauses {pauses}")
    assert not synchronous or not lost
    here.check_one_writable()
    here.check_all_equal()


def choose_laggard(here: Stage[Any], in_step: set[str]) -> tuple[str, str]:
    """Return the replica that is to lag, and the other; never one that is in step."""
    names = sorted(node.name for node in here.cluster.others(here.primary))
    first, second = sorted(names, key=lambda name: name in in_step)
    return first, second
