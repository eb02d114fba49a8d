"""The contract of every store, on Redis: blocking and asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.benches import marked
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.redis_bench import AsyncRedisBench, RedisBench

from zkelect.errors import FenceStateLost, Unclaimed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers.redis import RedisServer
    from stores.bearers import FakeBearer


@pytest.fixture(params=[RedisBench, AsyncRedisBench], ids=["sync", "asyncio"])
def bench(request: pytest.FixtureRequest, redis: RedisServer) -> Iterator[RedisBench]:
    with request.param(redis) as made:
        yield made


def test_h51_without_a_claim_nothing_is_written(  # type: ignore[no-redef]  # takes its place
    bench: RedisBench, bearer: Callable[..., FakeBearer]
) -> None:
    """Instead of the contract's: a mark that is missing here may be a lost one."""
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    with pytest.raises(FenceStateLost, match="there is no mark"):
        bench.write(fence, old, "no mark yet")
    fence.claim(old)
    with pytest.raises(Unclaimed):
        bench.write(fence, new, "the mark is the predecessor's")
    assert (bench.log(), marked(fence), new.ends) == ([], old.token, [])
