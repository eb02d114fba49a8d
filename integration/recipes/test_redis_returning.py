"""An old primary comes back empty (H83); at no time does it take writes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis.exceptions import ReadOnlyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.redis_node import RedisNode
    from recipes.stage import Stage

pytestmark = pytest.mark.timeout(600)


def test_h83_a_server_that_is_restarted_empty_never_leads(
    redis_stage: Callable[..., Stage[RedisNode]], times: Callable[..., int]
) -> None:
    """Its agent lives all the time, and starts it again; it keeps nothing on the disk."""
    here = redis_stage()
    for _ in range(times(1, 5)):
        old = here.primary
        before = len(here.writer.confirmed)
        here.cluster[old].forget()
        here.cluster[old].kill()
        assert here.await_another() != old
        here.crew.wait_following()
        assert len(here.lost_rows()) < before
    here.check_one_writable()
    here.check_all_equal()


def test_h83_a_host_that_comes_back_at_once_and_empty_never_leads(
    redis_stage: Callable[..., Stage[RedisNode]], times: Callable[..., int]
) -> None:
    """Its init system starts server and agent before anybody has missed them."""
    here = redis_stage(policy={"patience": 5.0})
    for _ in range(times(1, 5)):
        old = here.primary
        before = len(here.writer.confirmed)
        here.crew.kill_host(old)
        node = here.cluster[old]
        node.forget()
        node.start()
        assert node.told("role") == "slave"
        assert not node.written()
        with pytest.raises(ReadOnlyError):
            node.ask("sadd", "written", -1)
        here.crew.agents[old].start()
        assert here.await_another() != old
        here.crew.wait_following()
        assert len(here.lost_rows()) < before
    here.check_one_writable()
    here.check_all_equal()
