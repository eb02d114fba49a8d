"""The fence of MariaDB that the user names: without one, or with one that fails, all wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from recipes.mariadb_node import MariaDBNode, ask_dead_switch
from recipes.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.recipes.member import Answer, Member
    from zkelect.testing import LocalEnsemble

pytestmark = pytest.mark.timeout(300)


class Unfenced(MariaDBNode):
    """Nobody has named a fence."""

    def fence(self) -> None:
        return None


class FencedInVain(MariaDBNode):
    """The fence that was named fails."""

    def fence(self) -> Callable[[Member, float], Answer]:
        return ask_dead_switch


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Unfenced, "whether alpha is fenced is not known"),
        (FencedInVain, "the switch of alpha does not answer"),
    ],
)
def test_h85_nobody_is_promoted_while_the_old_primary_is_not_fenced(
    zookeeper: LocalEnsemble, path: str, kind: type[MariaDBNode], reason: str
) -> None:
    """T7. Server and agent are gone; each coordinator tells why, and waits for them."""
    with staged(kind, zookeeper, path) as here:
        here.crew.kill_host("alpha")
        until(lambda: len(telling(here, reason)) == 1, "the reason is told")
        first = telling(here, reason).pop()
        here.crew.agents[first].kill()
        here.crew.agents[first].start()
        until(lambda: len(telling(here, reason)) == 2, "the next one tells it, too")
        page = here.crew.page
        assert page is not None
        assert page.primary == "alpha"
        assert here.writable() == []
        here.crew.agents["alpha"].start()
        here.await_reign()
        here.await_joined()
        assert here.lost_rows() == []
        here.check_one_writable()
        here.check_all_equal()


def telling(here: Stage[MariaDBNode], reason: str) -> set[str]:
    """Return whose agents have told this reason."""
    return {name for name, agent in here.crew.agents.items() if reason in agent.log.read_text()}
