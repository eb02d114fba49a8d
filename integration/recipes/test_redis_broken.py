"""Redis servers that do not answer as they should: nothing is concluded from that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from recipes.cluster import Cluster
from recipes.redis_node import RedisNode

from zkelect.recipes.member import Answer
from zkelect.recipes.redis import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def node() -> Iterator[RedisNode]:
    with Cluster(RedisNode, ["alpha"]) as made:
        yield made["alpha"]


def server_of(node: RedisNode) -> RedisServer:
    return RedisServer(node.member(), node.placed(), domain="broken")


def test_a_primary_that_is_busy_with_a_script_may_take_writes(node: RedisNode) -> None:
    """It answers -BUSY to everything, and goes on writing."""
    witness = server_of(node)
    node.ask("config", "set", "busy-reply-threshold", "50")
    with node.connect() as client:
        connection = client.connection_pool.get_connection()
        connection.send_command("EVAL", "while true do end", "0")
        until(lambda: witness.reach(node.member()) is not Answer.YES, "the script runs")
        assert witness.reach(node.member()) is Answer.UNKNOWN
        node.ask("script", "kill")
        connection.disconnect()
    until(lambda: witness.reach(node.member()) is Answer.YES, "it answers again")
