"""MariaDB servers that cannot be looked after are refused at the start, with what to change."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from recipes.cluster import Cluster
from recipes.mariadb_node import APPLICATION, MariaDBNode

from zkelect.recipes.mariadb import MariaDB
from zkelect.recipes.member import Role
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def node() -> Iterator[MariaDBNode]:
    with Cluster(MariaDBNode, ["alpha"]) as made:
        yield made["alpha"]


def server_of(node: MariaDBNode, **options: Any) -> MariaDB:
    return MariaDB(node.member(), node.placed(**options), domain="checks")


def refusal(server: MariaDB) -> str:
    with closing(server), pytest.raises(Unfit) as caught:
        server.check()
    return str(caught.value)


def test_a_fit_server_is_not_refused(node: MariaDBNode) -> None:
    server = server_of(node)
    server.check()
    server.close()


def test_a_server_that_is_down_is_started_and_takes_no_writes(node: MariaDBNode) -> None:
    node.kill()
    server = server_of(node)
    server.check()
    assert server.observe().role is Role.DEMOTED
    server.close()


def test_a_server_that_is_down_and_that_nobody_can_start(node: MariaDBNode) -> None:
    node.kill()
    assert "no command is given" in refusal(server_of(node, start=()))


def test_a_data_directory_that_is_not_the_servers(node: MariaDBNode) -> None:
    assert "has its data in" in refusal(server_of(node, data_directory=node.folder))


def test_an_account_that_may_not_do_everything(node: MariaDBNode) -> None:
    assert "READ_ONLY ADMIN" in refusal(server_of(node, user=APPLICATION))


def test_a_database_that_is_not_there(node: MariaDBNode) -> None:
    assert "CREATE DATABASE nothing" in refusal(server_of(node, database="nothing"))


def test_another_account_for_which_read_only_does_not_hold(node: MariaDBNode) -> None:
    node.ask(f"grant read_only admin on *.* to {APPLICATION}@'%'")
    assert f"'{APPLICATION}'@'%' may write" in refusal(server_of(node))


@pytest.mark.parametrize("setting", ["read-only", "skip-slave-start"])
def test_a_server_that_would_not_be_closed_after_a_restart(setting: str) -> None:
    with Cluster(MariaDBNode, ["alpha"], **{setting: "0"}) as made:
        told = refusal(server_of(made["alpha"]))
    assert f"put {setting.replace('-', '_')}=1 below [mariadbd]" in told


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("log-slave-updates", "0"),
        ("gtid-strict-mode", "0"),
        ("sync-binlog", "0"),
        ("innodb-flush-log-at-trx-commit", "2"),
        ("replicate-do-db", "test"),
    ],
)
def test_a_setting_that_will_not_do(setting: str, value: str) -> None:
    with Cluster(MariaDBNode, ["alpha"], **{setting: value}) as made:
        assert setting.replace("-", "_") in refusal(server_of(made["alpha"]))


def test_transactions_of_another_domain(node: MariaDBNode) -> None:
    node.ask("set global gtid_slave_pos = '7-1-1'")
    assert "gtid_domain_id is 0, and the server has 7-1-1" in refusal(server_of(node))
