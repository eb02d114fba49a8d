"""A planned switch under a writer: nothing confirmed is lost, and nothing is written twice.

Of the contract: each test is run with each kind of servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.stage import Stage


@pytest.mark.timeout(1800)
def test_h84_planned_switches_lose_no_confirmed_write(
    stage: Callable[..., Stage[Any]], times: Callable[..., int]
) -> None:
    """T6. With a writer of 1,000 writes a second; the pause of each switch is printed."""
    here = stage(rate=1000.0)
    for _ in range(times(3, 20)):
        names = sorted(node.name for node in here.cluster.others(here.primary))
        here.switch_over(names[0])
        here.crew.wait_following()
    here.writer.stop()
    pauses = here.writer.pauses()
    print("pauses:", ", ".join(f"{each:.2f} s" for each in pauses))
    assert len(pauses) == len(here.primaries) - 1
    assert here.lost_rows() == []
    here.check_one_writable()
    here.check_all_equal()
