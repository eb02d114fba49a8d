"""Where a guarded Redis is: URLs that are refused before anything is opened."""

from __future__ import annotations

from typing import Any

import pytest
import redis
import redis.asyncio

from zkelect.errors import InvalidArgument
from zkelect.stores.async_redis import AsyncRedisFence
from zkelect.stores.redis import RedisFence
from zkelect.stores.redis_address import name_of

every_fence = pytest.mark.parametrize("fence", [RedisFence, AsyncRedisFence])


@every_fence
@pytest.mark.parametrize(
    "server",
    [
        "localhost:6379",
        "localhost",
        "",
        "http://localhost/0",
        "postgresql://localhost/0",
        "redis:localhost",
        "redis://localhost:port/0",
        "redis://localhost:0/0",
        "redis://localhost:70000/0",
        "redis://localhost/billing",
        "redis://localhost/0?no_such_option=1",
        "redis://localhost/0?socket_timeout=soon",
        None,
        5,
        b"redis://localhost",
    ],
)
def test_what_is_no_redis_is_refused(fence: type[Any], server: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"server=.*redis://host:port/0"):
        fence(server, domain="d")


@pytest.mark.parametrize(
    ("fence", "client"), [(RedisFence, redis.asyncio.Redis), (AsyncRedisFence, redis.Redis)]
)
def test_a_client_of_the_other_kind_is_refused(fence: type[Any], client: type[Any]) -> None:
    with pytest.raises(InvalidArgument, match="server="):
        fence(client(), domain="d")


@every_fence
@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@host/0?password=secret",
        "redis://user:secret@host:port/0",
        "redis://:secret@host/billing?password=secret",
        "redis://:secret@host/0?nothing=1&password=secret",
    ],
)
def test_a_refusal_does_not_tell_the_password(fence: type[Any], url: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        fence(url, domain="d")
    assert "secret" not in str(caught.value)
    assert "secret" not in str(caught.value.value)
    assert "host" in str(caught.value.value)


@every_fence
@pytest.mark.parametrize(
    "url", ["redis://user:secret?secret@host:1/0", "redis://host:port/0?password=a@secret"]
)
def test_a_url_that_can_be_read_in_two_ways_is_not_shown(fence: type[Any], url: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        fence(url, domain="d")
    assert caught.value.value == "redis://..."


@every_fence
@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6380/5",
        "rediss://:secret@localhost:6380/5?ssl_cert_reqs=none",
        "unix:///run/redis.sock?db=2",
        "redis://[::1]:6379/0",
        "redis://localhost?db=3&socket_timeout=1.5&decode_responses=True",
    ],
)
def test_what_redis_py_understands_is_taken(fence: type[Any], url: str) -> None:
    fence(url, domain="d")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"host": "db", "port": 6380, "db": 5, "password": "secret"}, "redis:db:6380/5"),
        ({"host": "db"}, "redis:db:6379/0"),
        ({"path": "/run/redis.sock", "db": 2}, "redis:unix:/run/redis.sock/2"),
        ({}, "redis"),
    ],
)
def test_a_server_is_named_without_its_secrets(options: dict[str, Any], name: str) -> None:
    assert name_of(options) == name
