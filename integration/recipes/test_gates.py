"""When nobody is promoted: nobody is eligible, promotions are paused, or nothing is wrong.

Of the contract: each test is run with each kind of servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from election.waiting import until
from recipes.stage import staged

from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.node import Node
    from recipes.stage import Stage

    from zkelect.recipes.position import Position

pytestmark = pytest.mark.timeout(600)


def test_h85_nobody_is_eligible_and_the_reason_of_each_is_listed(
    stage: Callable[..., Stage[Any]],
) -> None:
    """T7. The others are never promoted; the old primary leads again, if it has what it had."""
    here = stage(members={"beta": {"candidate": False}, "gamma": {"candidate": False}})
    old = here.primary
    here.crew.kill_host(old)
    until(lambda: here.crew.logged("beta: it is never promoted"), "the coordinator says why")
    reasons = {each.name: each.reason for each in here.crew.promotion.status().verdicts}
    assert reasons.keys() == {"alpha", "beta", "gamma"}
    assert "not there" in reasons["alpha"]
    assert "never promoted" in reasons["beta"]
    assert "never promoted" in reasons["gamma"]
    page = here.crew.page
    assert page is not None
    assert page.primary == old
    here.crew.agents[old].start()
    if here.cluster.kind.durable:
        here.writer.wait_for(20)
        here.crew.wait_following()
        assert here.lost_rows() == []
    else:
        until(lambda: here.crew.logged(f"{old}: it is not healthy"), "it has nothing any more")
        assert here.writable() == []
    here.check_one_writable()


def test_a_pause_holds_until_it_is_resumed(stage: Callable[..., Stage[Any]]) -> None:
    """T8. The primary dies meanwhile: nobody follows it, then somebody does at once."""
    here = stage()
    here.crew.promotion.pause("the network is being worked on", by="ada")
    dead = here.primary
    here.crew.kill_host(dead)
    until(lambda: here.crew.logged("paused by 'ada'"), "the coordinator says that it is paused")
    paused = here.crew.promotion.status().paused
    assert paused is not None
    assert paused.why == "the network is being worked on"
    page = here.crew.page
    assert page is not None
    assert page.primary == dead
    here.crew.promotion.resume()
    here.await_another()
    here.bring_back(dead)
    here.check_one_writable()
    here.check_all_equal()


def test_zookeeper_is_restarted_server_by_server_and_nobody_is_promoted(
    kind: type[Node], times: Callable[..., int]
) -> None:
    """T9. The writer does not notice."""
    with (
        LocalEnsemble(servers=3, tick_time=0.2) as zookeeper,
        staged(kind, zookeeper, "/cluster", session={"session_timeout": 4.0}) as here,
    ):
        before = here.crew.page
        for _ in range(times(1, 5)):
            for server in zookeeper.servers:
                server.kill()
                server.start()
                zookeeper.wait_ready()
                await_beats(here)
                here.writer.wait_for(100)
        after = here.crew.page
        assert before is not None
        assert after is not None
        assert (after.primary, after.reign) == (before.primary, before.reign)
        assert here.lost_rows() == []
        here.check_one_writable()


def await_beats(here: Stage[Any]) -> None:
    """Wait until each agent has told something new, as it can while a writer writes."""
    before = positions(here)

    def all_have_told() -> bool:
        after = positions(here)
        return after.keys() == here.cluster.nodes.keys() and not before.items() & after.items()

    until(all_have_told, "a new heartbeat of each agent")


def positions(here: Stage[Any]) -> dict[str, Position | None]:
    return {beat.name: beat.observed.position for beat in here.crew.board.beats()}
