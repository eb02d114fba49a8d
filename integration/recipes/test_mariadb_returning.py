"""An old primary of MariaDB comes back; it keeps what it has, and takes no writes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pymysql
import pytest
from election.waiting import until
from recipes.mariadb_node import MariaDBNode
from recipes.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble

pytestmark = pytest.mark.timeout(600)

READ_ONLY = 1290


@pytest.fixture
def here(zookeeper: LocalEnsemble, path: str) -> Iterator[Stage[MariaDBNode]]:
    with staged(MariaDBNode, zookeeper, path) as made:
        yield made


def test_h82_an_old_primary_with_more_is_refused_and_keeps_it(here: Stage[MariaDBNode]) -> None:
    """T5. What it confirmed alone is there for whoever wants to look, and nowhere else."""
    old = here.primary
    node = here.cluster[old]
    lose_some(here)
    lost = set(here.lost_rows())
    assert len(lost) >= 50
    here.crew.agents[old].start()
    until(lambda: here.refused() == {old}, "it is refused")
    assert "mariadb-dump" in reason_of(here, old)
    assert lost <= node.written()
    assert refusal(node) == READ_ONLY
    assert node.status().get("Slave_IO_Running", "No") == "No"
    here.await_joined()  # rebuilt by hand
    assert lost.isdisjoint(node.written())
    here.check_one_writable()
    here.check_all_equal()


def test_h82_a_refused_one_is_refused_again_after_a_restart(here: Stage[MariaDBNode]) -> None:
    """Of server and agent: that it is another history is in its data, and in no memory."""
    old = here.primary
    lose_some(here)
    here.crew.agents[old].start()
    until(lambda: here.refused() == {old}, "it is refused")
    here.crew.kill_host(old)
    here.cluster[old].start()
    assert refusal(here.cluster[old]) == READ_ONLY
    here.crew.agents[old].start()
    until(lambda: here.refused() == {old}, "it is refused again")
    assert refusal(here.cluster[old]) == READ_ONLY
    here.check_one_writable()
    here.check_all_equal(without={old})


def test_h82_a_host_that_comes_back_at_once_takes_no_writes(
    here: Stage[MariaDBNode], times: Callable[..., int]
) -> None:
    """Its init system starts server and agent before anybody has missed them."""
    for _ in range(times(1, 5)):
        old = here.primary
        here.crew.kill_host(old)
        here.cluster[old].start()
        assert refusal(here.cluster[old]) == READ_ONLY
        here.crew.agents[old].start()
        here.await_reign()
        here.await_joined()
    here.check_one_writable()
    here.check_all_equal()


def lose_some(here: Stage[MariaDBNode]) -> None:
    """Have the primary confirm what no replica has, and die; wait for another one."""
    old = here.primary
    others = [node.name for node in here.cluster.others(old)]
    for name in others:
        here.hold_back(name)
    here.writer.wait_for(50)
    here.crew.kill_host(old)
    for name in others:
        here.crew.agents[name].resume()
    here.await_another()


def reason_of(here: Stage[MariaDBNode], name: str) -> str:
    beat = here.crew.promotion.status().beat(name)
    return "" if beat is None else beat.observed.rebuild


def refusal(node: MariaDBNode) -> int:
    """Return the number of the error with which an application's write is refused."""
    with node.client() as client, pytest.raises(pymysql.Error) as caught:
        client.write(-1)
    return int(caught.value.args[0])
