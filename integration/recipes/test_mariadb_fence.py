"""Fences of MariaDB: the one that the user names, and the token in the fence table (grade A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy
from election.waiting import until
from recipes.mariadb_node import MariaDBNode, ask_dead_switch
from recipes.stage import Stage, staged

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@pytest.fixture
def here(zookeeper: LocalEnsemble, path: str) -> Iterator[Stage[MariaDBNode]]:
    with staged(MariaDBNode, zookeeper, path) as made:
        yield made


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


def test_the_new_mariadb_primary_has_the_token_that_the_page_names(
    here: Stage[MariaDBNode], path: str
) -> None:
    old = marked(here, path)
    here.fail_over()
    page = here.crew.page
    assert page is not None
    new = marked(here, path)
    assert str(new) == page.primary_token
    assert new > old


def test_an_older_token_cannot_claim_in_mariadb_any_more(
    here: Stage[MariaDBNode], path: str
) -> None:
    old = marked(here, path)
    here.fail_over()
    node = here.cluster[here.primary]
    url = f"mariadb+pymysql://zkelect@{node.address}/zkelect"
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    fence = zkelect.stores.SqlFence(engine, domain=path)
    with pytest.raises(zkelect.Fenced):
        fence.claim(old)


def marked(here: Stage[MariaDBNode], path: str) -> zkelect.Token:
    query = "select token from zkelect.zkelect_fence where domain = %s"
    return zkelect.Token.parse(here.cluster[here.primary].ask(query, path))


def telling(here: Stage[MariaDBNode], reason: str) -> set[str]:
    """Return whose agents have told this reason."""
    return {name for name, agent in here.crew.agents.items() if reason in agent.log.read_text()}
