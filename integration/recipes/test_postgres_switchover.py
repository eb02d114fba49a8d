"""A planned switch under a writer: nothing confirmed is lost, and nothing is written twice."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_stage import Stage


@pytest.mark.timeout(600)
def test_h84_planned_switches_lose_no_confirmed_row(
    stage: Callable[..., Stage], times: Callable[..., int]
) -> None:
    """T6. With a writer of 1,000 rows a second; the pause of each switch is printed."""
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


@pytest.mark.timeout(300)
def test_a_switch_to_one_that_does_not_receive_is_called_off(stage: Callable[..., Stage]) -> None:
    """The old primary is opened again, and nothing is lost."""
    here = stage()
    node = here.cluster["beta"]
    receiver = node.ask("select pid from pg_stat_activity where backend_type = 'walreceiver'")
    os.kill(receiver, signal.SIGSTOP)
    try:
        with pytest.raises(zkelect.SwitchoverFailed):
            here.crew.promotion.switchover("beta")
        here.writer.wait_for(20, port=here.cluster["alpha"].port)
    finally:
        with suppress(ProcessLookupError):
            os.kill(receiver, signal.SIGCONT)
    assert here.lost_rows() == []
    here.crew.wait_following()
    here.check_one_writable()
    here.check_all_equal()
