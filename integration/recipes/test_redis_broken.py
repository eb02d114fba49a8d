"""Redis servers that do not answer as they should: nothing is concluded from that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from recipes.cluster import Cluster
from recipes.redis_node import RedisNode

from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer
from zkelect.recipes.redis import RedisServer
from zkelect.recipes.resource import NotNow

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


def test_a_primary_that_is_full_of_clients_may_take_writes(node: RedisNode) -> None:
    """Those who are in go on writing."""
    witness = server_of(node)
    with node.connect() as writer:
        writer.config_set("maxclients", 1)
        assert witness.reach(node.member()) is Answer.UNKNOWN
        assert writer.sadd("written", 1) == 1
        writer.config_set("maxclients", 100)
    assert witness.reach(node.member()) is Answer.YES


def test_a_planned_change_leaves_a_primary_alone_that_is_full_of_clients(node: RedisNode) -> None:
    """Killed, it would come back with its last snapshot; its lease is renewed meanwhile."""
    server, before = server_of(node), node.pid
    server.observe()
    with node.connect() as writer:
        writer.config_set("maxclients", 1)
        with pytest.raises(NotNow, match="max number of clients"):
            server.demote(planned=True, deadline=now() + 30)
        assert writer.sadd("written", 1) == 1
        writer.config_set("maxclients", 100)
    assert node.pid == before
