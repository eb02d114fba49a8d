"""A PostgreSQL server is lost: what synchronous replication makes of that, and a quick start."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from election.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_node import PostgresNode
    from recipes.stage import Stage


@pytest.mark.timeout(300)
def test_a_row_that_the_one_in_step_does_not_have_is_not_confirmed(
    postgres_stage: Callable[..., Stage[PostgresNode]],
) -> None:
    """Synchronous: what it receives is stopped, the writer waits, and then the primary dies."""
    here = postgres_stage(policy={"synchronous": True})
    (in_step,) = here.await_in_step()
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
    postgres_stage: Callable[..., Stage[PostgresNode]],
) -> None:
    """Synchronous: nothing is confirmed until the set is another one, and then it goes on."""
    here = postgres_stage(policy={"synchronous": True})
    (first,) = here.await_in_step()
    here.crew.kill_host(first)
    here.writer.wait_for(50)
    primary = here.primary
    (other,) = {node.name for node in here.cluster.nodes.values()} - {first, primary}
    until(lambda: here.await_in_step() == {other}, f"{other} is in step")
    assert here.lost_rows() == []


@pytest.mark.timeout(600)
def test_the_server_alone_dies_and_nothing_is_lost(
    postgres_stage: Callable[..., Stage[PostgresNode]], times: Callable[..., int]
) -> None:
    """Its agent starts it as a standby: it has the most, also with asynchronous replication."""
    here = postgres_stage()
    for _ in range(times(1, 5)):
        here.cluster[here.primary].kill()
        here.await_reign()
        here.crew.wait_following()
    here.writer.stop()
    print("longest pause:", f"{here.writer.longest_pause():.2f} s")
    assert here.lost_rows() == []
    here.check_one_writable()
    here.check_all_equal()
