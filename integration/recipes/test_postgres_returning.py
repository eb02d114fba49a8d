"""An old primary comes back to its cluster (H82); at no time does it take writes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from election.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_node import PostgresNode
    from recipes.stage import Stage

pytestmark = pytest.mark.timeout(600)


def test_h82_an_old_primary_with_extra_wal_is_rewound(
    postgres_stage: Callable[..., Stage[PostgresNode]], times: Callable[..., int]
) -> None:
    """T5. It confirmed rows that no standby had; they are gone, on all servers alike."""
    here = postgres_stage()
    for _ in range(times(1, 5)):
        old = here.primary
        for node in here.cluster.others(old):
            here.hold_back(node.name)
        here.writer.wait_for(50)
        here.crew.kill_host(old)
        for node in here.cluster.others(old):
            here.crew.agents[node.name].resume()
        here.await_another()
        lost = here.lost_rows()
        assert len(lost) >= 50
        here.bring_back(old)
    here.check_one_writable()
    here.check_all_equal()


def test_h82_an_old_primary_of_the_same_timeline_and_another_history_is_refused(
    postgres_stage: Callable[..., Stage[PostgresNode]],
) -> None:
    """T5. Somebody has promoted it by hand, to the number that the new primary has too."""
    here = postgres_stage()
    old = here.primary
    new = here.fail_over()
    node = here.cluster[old]
    node.start()
    assert node.ask("select pg_is_in_recovery()"), "it takes writes by itself"
    node.ask("select pg_promote()")
    node.ask("set default_transaction_read_only = off; insert into written values (-1)")
    here.crew.agents[old].start()

    def rebuild() -> str:
        beat = here.crew.promotion.status().beat(old)
        return "" if beat is None else beat.observed.rebuild

    until(rebuild, f"{old} needs a rebuild")
    assert "pg_basebackup" in rebuild()
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        node.ask("insert into written values (-2)")
    assert here.crew.primary() == new
    assert here.cluster[new].ask("select count(*) from written where number < 0") == 0
    assert node.ask("select count(*) from written where number < 0") == 1, "merged"
