"""Servers that cannot be looked after are refused at the start, with what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest
from recipes.acts import soon
from recipes.cluster import Cluster
from recipes.postgres_node import PostgresNode

from zkelect.recipes.member import Member, Role
from zkelect.recipes.postgres import Place, Postgres
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def node() -> Iterator[PostgresNode]:
    with Cluster(PostgresNode, ["alpha"]) as made:
        yield made["alpha"]


@pytest.fixture(scope="module")
def other() -> Iterator[PostgresNode]:
    with Cluster(PostgresNode, ["beta"]) as made:
        yield made["beta"]


def refusal(place: Place) -> str:
    with pytest.raises(Unfit) as caught:
        Postgres(Member(name="alpha"), place, domain="checks").check()
    return str(caught.value)


def changed(node: PostgresNode, **settings: str) -> Place:
    """Restart the server with other settings."""
    node.stop()
    node.configure({**node.settings, **settings})
    node.start()
    return node.place


def test_a_fit_server_is_not_refused(node: PostgresNode) -> None:
    Postgres(node.member(), changed(node), domain="checks").check()


def test_a_folder_that_is_no_data_directory(node: PostgresNode) -> None:
    place = attrs.evolve(node.place, data_directory=node.folder)
    assert "PostgreSQL data directory" in refusal(place)


def test_another_major_version(
    node: PostgresNode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / "PG_VERSION").write_text("14\n")
    place = attrs.evolve(node.place, data_directory=folder)
    assert "PostgreSQL 14; this recipe knows 15" in refusal(place)


def test_the_data_directory_of_another_server(node: PostgresNode, other: PostgresNode) -> None:
    place = attrs.evolve(node.place, data_directory=other.data)
    said = refusal(place)
    assert str(node.data) in said
    assert str(other.data) in said


def test_a_role_that_is_no_superuser(node: PostgresNode) -> None:
    changed(node)
    node.ask("create role app login replication")
    local = f"host={node.folder} port={node.port} user=app dbname=postgres"
    assert "no superuser" in refusal(attrs.evolve(node.place, local=local))


def test_a_server_that_does_not_answer_there(node: PostgresNode) -> None:
    place = attrs.evolve(node.place, local=f"host={node.folder} port=1 user=zkelect")
    assert "does not answer" in refusal(place)


def test_replication_that_pg_hba_does_not_allow(node: PostgresNode) -> None:
    rules = node.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all all trust\nhost all all 127.0.0.1/32 trust\n")
    node.run("pg_ctl", "reload")
    changed(node)
    try:
        said = refusal(node.place)
    finally:
        rules.write_text(before)
        node.run("pg_ctl", "reload")
    assert "REPLICATION" in said
    assert "pg_hba.conf" in said


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"wal_log_hints": "off"}, "wal_log_hints = on"),
        ({"full_page_writes": "off"}, "full_page_writes"),
        ({"hot_standby": "off"}, "hot_standby"),
        ({"recovery_target_timeline": "current"}, "recovery_target_timeline"),
        ({"max_wal_senders": "0", "wal_level": "replica"}, "max_wal_senders"),
    ],
)
def test_a_setting_that_will_not_do(
    node: PostgresNode, settings: dict[str, str], told: str
) -> None:
    assert told in refusal(changed(node, **settings))


def test_a_setting_of_ours_on_the_command_line(node: PostgresNode) -> None:
    changed(node)
    node.stop()
    node.start("-o", "-c default_transaction_read_only=on")
    try:
        assert "command line" in refusal(node.place)
    finally:
        node.stop()
        node.start()


def test_a_server_that_is_down_and_was_no_standby_is_not_started(node: PostgresNode) -> None:
    changed(node)
    node.stop()
    try:
        assert "start it yourself" in refusal(node.place)
        assert node.pid is None
    finally:
        node.start()


def test_a_standby_that_is_down_is_started(node: PostgresNode) -> None:
    changed(node)
    server = Postgres(node.member(), node.place, domain="checks")
    server.demote(planned=True, deadline=soon())
    node.stop()
    server.check()
    assert server.observe().role is Role.DEMOTED
    server.promote(soon())
    server.open(soon())
