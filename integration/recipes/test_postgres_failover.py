"""The primary is lost: one other is promoted, the most advanced, and never two take writes."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from election.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_stage import Stage


@pytest.mark.timeout(900)
@pytest.mark.parametrize("synchronous", [False, True], ids=["asynchronous", "synchronous"])
def test_h81_the_most_advanced_is_promoted_each_time_the_primary_is_killed(
    stage: Callable[..., Stage], times: Callable[..., int], synchronous: bool
) -> None:
    """T1. Under a writer at full speed, with one standby made to lag."""
    here = stage(policy={"synchronous": synchronous})
    lost: set[int] = set()
    for _ in range(times(3, 20)):
        in_step = wait_in_step(here) if synchronous else set()
        laggard, other = choose_laggard(here, in_step)
        here.hold_back(laggard)
        here.writer.wait_for(100)
        here.crew.agents[laggard].resume()
        dead = here.primary
        assert here.fail_over() == other
        lost.update(here.lost_rows())
        here.bring_back(dead)
    print(
        f"confirmed {len(here.writer.confirmed)}, lost {len(lost)}, pauses",
        told(here.writer.pauses()),
    )
    assert not synchronous or not lost
    here.check_one_writable()
    here.check_all_equal()


@pytest.mark.timeout(300)
def test_a_row_that_the_one_in_step_does_not_have_is_not_confirmed(
    stage: Callable[..., Stage],
) -> None:
    """Synchronous: what it receives is stopped, the writer waits, and then the primary dies."""
    here = stage(policy={"synchronous": True})
    (in_step,) = wait_in_step(here)
    primary, standby = here.cluster[here.primary], here.cluster[in_step]
    receiver = standby.ask("select pid from pg_stat_activity where backend_type = 'walreceiver'")
    os.kill(receiver, signal.SIGSTOP)
    waiting = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"
    until(lambda: primary.ask(waiting) > 0, "the writer waits for a confirmation")
    here.crew.kill_host(here.primary)
    os.kill(receiver, signal.SIGCONT)
    assert here.await_another() == in_step
    assert here.lost_rows() == []


@pytest.mark.timeout(300)
def test_when_the_one_in_step_dies_the_primary_waits_for_another(
    stage: Callable[..., Stage],
) -> None:
    """Synchronous: nothing is confirmed until the set is another one, and then it goes on."""
    here = stage(policy={"synchronous": True})
    (first,) = wait_in_step(here)
    here.crew.kill_host(first)
    here.writer.wait_for(50)
    primary = here.primary
    (other,) = {node.name for node in here.cluster.nodes.values()} - {first, primary}
    until(lambda: wait_in_step(here) == {other}, f"{other} is in step")
    assert here.lost_rows() == []


def wait_in_step(here: Stage) -> set[str]:
    """Wait until the primary has recorded who has everything that it confirms."""
    found: set[str] = set()

    def recorded() -> bool:
        page, (sync, _) = here.crew.page, here.crew.board.sync()
        if page is not None and sync is not None and sync.reign == page.reign:
            found.update(sync.names)
        return bool(found)

    until(recorded, f"{here.primary} has recorded a sync set")
    return found


def choose_laggard(here: Stage, in_step: set[str]) -> tuple[str, str]:
    """Return the standby that is to lag, and the other; never one that is in step."""
    names = sorted(node.name for node in here.cluster.others(here.primary))
    first, second = sorted(names, key=lambda name: name in in_step)
    return first, second


def told(seconds: list[float]) -> str:
    return ", ".join(f"{each:.2f} s" for each in seconds)
