"""The contract of every store, on Redis: blocking and asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.redis_bench import AsyncRedisBench, RedisBench

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.redis import RedisServer


@pytest.fixture(params=[RedisBench, AsyncRedisBench], ids=["sync", "asyncio"])
def bench(request: pytest.FixtureRequest, redis: RedisServer) -> Iterator[RedisBench]:
    with request.param(redis) as made:
        yield made
