"""Servers that cannot be looked after are refused at the start, with what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from recipes.cluster import Cluster
from recipes.redis_node import RedisNode

from zkelect.recipes.member import Role
from zkelect.recipes.redis import RedisServer
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def node() -> Iterator[RedisNode]:
    with Cluster(RedisNode, ["alpha"]) as made:
        yield made["alpha"]


def server_of(node: RedisNode, **options: Any) -> RedisServer:
    return RedisServer(node.member(), node.placed(**options), domain="checks")


def refusal(server: RedisServer) -> str:
    with pytest.raises(Unfit) as caught:
        server.check()
    return str(caught.value)


def test_a_fit_server_is_not_refused(node: RedisNode) -> None:
    server = server_of(node)
    server.check()
    server.close()


def test_a_server_that_is_down_is_started_as_a_replica(node: RedisNode) -> None:
    node.kill()
    server = server_of(node)
    server.check()
    assert server.observe().role is Role.DEMOTED
    server.close()


def test_a_server_that_is_down_and_that_nobody_can_start(node: RedisNode) -> None:
    node.kill()
    assert "no command is given" in refusal(server_of(node, start=()))


def test_a_configuration_with_which_it_would_start_as_a_primary(node: RedisNode) -> None:
    (node.folder / "start.conf").write_text("")
    assert "replicaof 127.0.0.1 0" in refusal(server_of(node))


def test_a_record_that_nobody_could_keep(node: RedisNode) -> None:
    assert "no folder" in refusal(server_of(node, record=node.folder / "none" / "record"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"replica-read-only": "no"}, "replica-read-only"),
        ({"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}, "maxmemory-policy"),
    ],
)
def test_a_setting_that_will_not_do(node: RedisNode, settings: dict[str, str], told: str) -> None:
    for name, value in settings.items():
        node.ask("config", "set", name, value)
    assert told in refusal(server_of(node))


def test_a_password_that_it_would_not_give_to_its_primary(node: RedisNode) -> None:
    place = node.placed()
    node.ask("config", "set", "requirepass", "secret")
    url = place.url.replace("//", "//:secret@")
    assert "masterauth" in refusal(server_of(node, url=url))


def test_a_user_who_may_not_do_everything(node: RedisNode) -> None:
    node.ask("acl", "setuser", "app", "on", ">secret", "~*", "+info", "-config")
    url = node.placed().url.replace("//", "//app:secret@")
    assert "every command" in refusal(server_of(node, url=url))


@pytest.mark.parametrize("name", ["replicaof", "client", "eval", "psync"])
def test_a_command_that_is_renamed(node: RedisNode, name: str) -> None:
    node.kill()
    with node.config.open("a") as config:
        config.write(f"rename-command {name.upper()} other-{name}\n")
    assert name.upper() in (told := refusal(server_of(node)))
    assert "rename-command" in told


@pytest.mark.parametrize("command", ["replicaof", "client|pause", "eval"])
def test_a_user_who_may_not_run_one_command(node: RedisNode, command: str) -> None:
    node.ask("acl", "setuser", "app", "on", ">secret", "~*", "+@all", f"-{command}")
    node.ask("config", "set", "masterauth", "secret")
    url = node.placed().url.replace("//", "//app:secret@")
    told = refusal(server_of(node, url=url))
    assert f"'{command}'" in told
    assert "+@all" in told


def test_a_user_who_may_run_every_command_is_not_refused(node: RedisNode) -> None:
    node.ask("acl", "setuser", "app", "on", ">secret", "~*", "+@all")
    server = server_of(node, url=node.placed().url.replace("//", "//app:secret@"))
    server.check()
    server.close()
