"""Whose confirmation counts: nobody is recorded for whom a commit does not wait."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from election.waiting import until
from recipes.acts import follow, resources, soon
from recipes.cluster import Cluster
from recipes.postgres_node import PostgresNode
from servers.packages import program
from servers.process import as_user

from zkelect.recipes.clock import now
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.recipes.postgres import Postgres

_STREAMING = "select count(*) from pg_stat_replication where state = 'streaming'"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def cluster() -> Iterator[Cluster[PostgresNode]]:
    with Cluster(PostgresNode, ["alpha", "beta"]) as made:
        yield made


@pytest.fixture
def servers(cluster: Cluster[PostgresNode]) -> Iterator[dict[str, Postgres]]:
    with resources(cluster) as made:
        follow(made["beta"], made["alpha"])
        yield made


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_h84_nobody_counts_as_required_before_commits_wait_for_it(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    """Whether they wait is said by the checkpointer, which may be in the middle of its work."""
    alpha = servers["alpha"]
    checkpointer = "select pid from pg_stat_activity where backend_type = 'checkpointer'"
    with frozen(int(cluster["alpha"].ask(checkpointer))), pytest.raises(NotNow):
        alpha.require(["beta"], now() + 2)
    alpha.require([], soon())
    alpha.require(["beta"], soon())
    assert alpha.in_step() == {"beta"}


@contextmanager
def receiving(cluster: Cluster[PostgresNode], name: str) -> Iterator[None]:
    """Let somebody else receive all that the primary writes, and confirm it, by this name."""
    folder = cluster.folder / "receiver"
    subprocess.run(as_user("postgres", ["/bin/mkdir", str(folder)]), check=True)
    source = f"{cluster['alpha'].address} user=zkelect application_name={name}"
    command = (program("pg_receivewal"), "--synchronous")
    receiver = subprocess.Popen(
        as_user("postgres", [*command, "--directory", str(folder), "--dbname", source])
    )
    try:
        until(lambda: cluster["alpha"].ask(_STREAMING) == 2, "both receive")
        yield
    finally:
        receiver.terminate()
        receiver.wait()


def test_h84_of_two_with_one_name_neither_counts(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    """A copy of a standby has its name, and PostgreSQL waits for either, whatever the case."""
    alpha = servers["alpha"]
    alpha.require(["beta"], soon())
    assert alpha.in_step() == {"beta"}
    with receiving(cluster, "Beta"):
        assert alpha.in_step() == set()
    until(lambda: alpha.in_step() == {"beta"}, "the standby is alone with its name again")
