"""What hangs, or is cut off, without being dead: it is demoted before another one is opened."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_stage import Stage

pytestmark = pytest.mark.timeout(600)


def test_only_zookeeper_is_cut_from_the_primary(
    stage: Callable[..., Stage], times: Callable[..., int]
) -> None:
    """T3. Clients and standbys reach it all the time; it is demoted before the other is opened.

    The proxy answers reads and pings, as a server does that has lost the others.
    """
    here = stage()
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
    stage: Callable[..., Stage], times: Callable[..., int], frozen: str
) -> None:
    """T2. And thawed when there is another primary: it must not take writes, not even once."""
    here = stage()
    for _ in range(times(2, 20)):
        old = here.primary
        if frozen != "server":
            here.crew.agents[old].freeze()
        if frozen != "agent":
            here.cluster[old].signal(signal.SIGSTOP)
        new = here.await_reign()  # with a living agent the server is killed, and may win again
        assert frozen == "server" or new != old
        here.cluster[old].signal(signal.SIGCONT)
        here.crew.agents[old].resume()
        here.crew.wait_following()
    here.check_one_writable()
    here.check_all_equal()


def test_the_server_alone_dies_and_nothing_is_lost(
    stage: Callable[..., Stage], times: Callable[..., int]
) -> None:
    """Its agent starts it as a standby: it has the most, also with asynchronous replication."""
    here = stage()
    for _ in range(times(2, 20)):
        here.cluster[here.primary].kill()
        here.await_reign()
        here.crew.wait_following()
    here.writer.stop()
    print("longest pause:", f"{here.writer.longest_pause():.2f} s")
    assert here.lost_rows() == []
    here.check_one_writable()
    here.check_all_equal()
