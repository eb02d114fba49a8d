"""An old primary comes back to its cluster; at no time does it take writes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from redis.exceptions import ReadOnlyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.redis_cluster import RedisNode
    from recipes.redis_stage import RedisStage

pytestmark = pytest.mark.timeout(600)


def test_h83_a_server_that_is_restarted_empty_never_leads(
    redis_stage: Callable[..., RedisStage], times: Callable[..., int]
) -> None:
    """Its agent lives all the time, and starts it again; it keeps nothing on the disk."""
    here = redis_stage()
    for _ in range(times(2, 20)):
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
    redis_stage: Callable[..., RedisStage], times: Callable[..., int]
) -> None:
    """Its init system starts server and agent before anybody has missed them."""
    here = redis_stage(policy={"patience": 5.0})
    for _ in range(times(1, 20)):
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


def test_h82_what_an_old_primary_wrote_apart_is_replaced_and_never_merged(
    redis_stage: Callable[..., RedisStage], times: Callable[..., int]
) -> None:
    """T5. It was frozen, confirmed numbers that no replica had, and kept them in its memory."""
    here = redis_stage()
    for _ in range(times(2, 20)):
        old = here.primary
        node = here.cluster[old]
        for other in here.cluster.others(old):
            here.hold_back(other.name)
        here.writer.wait_for(50)
        here.crew.agents[old].kill()
        await_demoted(node)
        for other in here.cluster.others(old):
            here.crew.agents[other.name].resume()
        here.await_another()
        assert len(here.lost_rows()) >= 50
        assert node.told("role") == "slave"
        here.bring_back(old)
    here.check_one_writable()
    here.check_all_equal()


def await_demoted(node: RedisNode) -> None:
    until(lambda: node.told("role") == "slave", "its dead-man has struck")
