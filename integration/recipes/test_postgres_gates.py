"""An agent with the path of another cluster leaves both as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recipes.cluster import Cluster
from recipes.crew import Crew
from recipes.postgres_node import PostgresNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.stage import Stage

    from zkelect.testing import LocalEnsemble

pytestmark = pytest.mark.timeout(600)


def test_a_server_of_another_cluster_is_refused_and_left_alone(
    postgres_stage: Callable[..., Stage[PostgresNode]], zookeeper: LocalEnsemble, path: str
) -> None:
    """A wrong path must not cost a cluster its primary."""
    here = postgres_stage()
    with Cluster(PostgresNode, ["delta"]) as other, Crew(other, zookeeper, path=path) as stray:
        assert stray.agents["delta"].wait_ended() != 0
        assert stray.logged("give it another path")
        assert not other["delta"].ask("select pg_is_in_recovery()")
        other["delta"].ask("create table still_writable ()")
    assert here.crew.primary() == here.primary
