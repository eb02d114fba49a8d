"""What hangs, or is cut off, without being dead: it is demoted before another one is opened.

Of the contract: each test is run with each kind of servers.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.stage import Stage

pytestmark = pytest.mark.timeout(600)


def test_only_zookeeper_is_cut_from_the_primary(
    stage: Callable[..., Stage[Any]], times: Callable[..., int]
) -> None:
    """T3. Clients and replicas reach it all the time; it is demoted before the other is opened.

    The proxy answers reads and pings, as a server does that has lost the others.
    """
    here = stage()
    for _ in range(times(1, 5)):
        old = here.primary
        here.crew.proxies[old].isolate()
        new = here.await_another()
        samples = [each for each in here.sampler.samples if each.writable]
        demoted = max(each.at for each in samples if each.server == old)
        opened = min(each.at for each in samples if each.server == new and each.at > demoted)
        print(f"{old} took writes until {opened - demoted:.2f} s before {new} did")
        here.check_one_writable()
        here.crew.proxies[old].heal()
        here.await_joined()
    here.check_one_writable()
    here.check_all_equal()


@pytest.mark.parametrize("frozen", ["agent", "server", "both"])
def test_something_of_the_primary_is_frozen(
    stage: Callable[..., Stage[Any]], times: Callable[..., int], frozen: str
) -> None:
    """T2. And thawed when there is another primary: it must not take writes, not even once."""
    here = stage()
    for _ in range(times(1, 5)):
        old = here.primary
        if frozen != "server":
            here.crew.agents[old].freeze()
        if frozen != "agent":
            here.cluster[old].signal(signal.SIGSTOP)
        new = here.await_reign()
        # With a living agent the server is killed; it may win again with all that it had.
        assert new != old or (frozen == "server" and here.cluster.kind.durable)
        here.cluster[old].signal(signal.SIGCONT)
        here.crew.agents[old].resume()
        here.await_joined()
    here.check_one_writable()
    here.check_all_equal()
