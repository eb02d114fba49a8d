"""What hangs, or is cut off, without being dead: it is demoted before another one is opened."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.redis_stage import RedisStage

pytestmark = pytest.mark.timeout(600)


def test_only_zookeeper_is_cut_from_the_primary(
    redis_stage: Callable[..., RedisStage], times: Callable[..., int]
) -> None:
    """T3. Clients and replicas reach it all the time; it is demoted before the other is opened.

    Nothing confirmed is lost: a server that is demoted keeps what it has, and competes.
    """
    here = redis_stage()
    for _ in range(times(2, 20)):
        old = here.primary
        here.crew.proxies[old].isolate()
        new = here.await_another()
        samples = [each for each in here.sampler.samples if each.writable]
        demoted = max(each.at for each in samples if each.server == old)
        opened = min(each.at for each in samples if each.server == new and each.at > demoted)
        print(f"{old} took writes until {opened - demoted:.2f} s before {new} did")
        here.check_one_writable()
        here.crew.proxies[old].heal()
        here.crew.wait_following()
    here.check_one_writable()
    here.check_all_equal()


@pytest.mark.parametrize("frozen", ["agent", "server", "both"])
def test_something_of_the_primary_is_frozen(
    redis_stage: Callable[..., RedisStage], times: Callable[..., int], frozen: str
) -> None:
    """T2. And thawed when there is another primary: it must not take writes, not even once."""
    here = redis_stage()
    for _ in range(times(2, 20)):
        old = here.primary
        if frozen != "server":
            here.crew.agents[old].freeze()
        if frozen != "agent":
            here.cluster[old].signal(signal.SIGSTOP)
        new = here.await_reign()
        assert new != old  # whose memory is gone when it was killed
        here.cluster[old].signal(signal.SIGCONT)
        here.crew.agents[old].resume()
        here.crew.wait_following()
    here.check_one_writable()
    here.check_all_equal()
