"""A server that comes back when there is an archive, with another history, and its own WAL."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from recipes.acts import follow, resources, take_over
from recipes.cluster import Cluster
from recipes.postgres_node import PostgresNode

from zkelect.recipes.member import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def archive() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)  # the server is another user
        yield Path(folder)


@pytest.fixture
def cluster(archive: Path) -> Iterator[Cluster[PostgresNode]]:
    settings = {
        "archive_mode": "on",
        "archive_command": f"cp %p {archive}/%f",
        "restore_command": f"cp {archive}/%f %p",
        "wal_keep_size": "0",
        "min_wal_size": "32MB",
        "max_wal_size": "32MB",
    }
    with Cluster(PostgresNode, ["alpha", "beta"], **settings) as made:
        yield made


def write_past_what_is_kept(node: PostgresNode) -> None:
    """Write until the WAL of now has gone from the server, and is in the archive."""
    (name,) = [node.ask("select pg_walfile_name(pg_current_wal_lsn())")]
    there = f"select count(*) from pg_ls_waldir() where name = '{name}'"  # noqa: S608  its own
    for _ in range(50):
        node.ask("create table extra as select 1 as number")
        node.ask("drop table extra")
        node.ask("select pg_switch_wal()")
        node.ask("checkpoint")
        if node.ask(there) == 0:
            return
    raise AssertionError(f"{name} is still there")


def test_h82_a_rewinding_fetches_wal_from_the_archive(cluster: Cluster[PostgresNode]) -> None:
    with resources(cluster) as servers:
        follow(servers["beta"], servers["alpha"])
        cluster["beta"].cut_off()
        cluster["alpha"].ask("create table apart (number int)")
        take_over(servers["beta"])
        write_past_what_is_kept(cluster["alpha"])
        follow(servers["alpha"], servers["beta"])
        assert servers["alpha"].observe().role is Role.REPLICA
        assert cluster["alpha"].ask("select to_regclass('apart')::text") is None


def test_h82_an_agent_starts_an_old_primary_whose_archive_has_another_history(
    cluster: Cluster[PostgresNode], archive: Path
) -> None:
    """With the archive it does not start, and the agent would end each time."""
    with resources(cluster) as servers:
        follow(servers["beta"], servers["alpha"])
        cluster["beta"].cut_off()
        cluster["alpha"].ask("create table apart (number int)")
        cluster["alpha"].ask("checkpoint")  # where it begins to recover is past the fork
        cluster["alpha"].kill()
        take_over(servers["beta"])
        until(lambda: [*archive.glob("*.history")], "the archive has the new history")
        servers["alpha"].check()
        assert servers["alpha"].observe().role is Role.DEMOTED
        follow(servers["alpha"], servers["beta"])
