"""What people and machines do to a server behind the agent's back."""

from __future__ import annotations

import os
import resource as limits
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest
from election.waiting import until
from recipes.acts import follow, resources, soon
from recipes.cluster import Cluster
from recipes.postgres_node import PostgresNode

from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer
from zkelect.recipes.postgres import Postgres, processes
from zkelect.recipes.postgres.lifecycle import find_postmaster, kill
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(300)

_CLAIM = """\
import sys
from pathlib import Path
from zkelect.recipes.postgres.claim import claim
claim(Path(sys.argv[1]))
print("claimed", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cluster() -> Iterator[Cluster[PostgresNode]]:
    with Cluster(PostgresNode, ["alpha", "beta"]) as made:
        yield made


@pytest.fixture
def servers(cluster: Cluster[PostgresNode]) -> Iterator[dict[str, Postgres]]:
    with resources(cluster) as made:
        yield made


def runs(pid: int) -> bool:
    """Tell whether it is there, and no zombie."""
    return Path(f"/proc/{pid}/cwd").exists()


def main_process(node: PostgresNode) -> int:
    found = find_postmaster(node.place)
    assert found is not None
    return found


# --- it is killed whatever has become of it --------------------------------------------------


def test_h82_a_server_whose_pid_file_is_gone_is_found_and_killed(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    """It goes on writing for up to a minute, until it misses the file itself."""
    node = cluster["alpha"]
    pid = main_process(node)
    (node.data / "postmaster.pid").unlink()
    assert main_process(node) == pid
    servers["alpha"].demote(planned=False, deadline=soon())
    assert not runs(pid)


def test_h82_a_process_that_the_kernel_leaves_out_of_its_list_is_killed_too(
    cluster: Cluster[PostgresNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it may when another one ends in that moment."""
    node = cluster["alpha"]
    monkeypatch.setattr(processes, "_children", lambda _: [])
    with node.connect() as session:
        backend = session.info.backend_pid
        assert runs(backend)
        kill(node.place)
        assert not runs(backend)


@contextmanager
def few_files() -> Iterator[None]:
    """Let this process open hardly any more."""
    soft, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    limits.setrlimit(limits.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 4, hard))  # noqa: PTH208  names
    try:
        yield
    finally:
        limits.setrlimit(limits.RLIMIT_NOFILE, (soft, hard))


def test_h82_a_server_of_more_processes_than_we_may_open_files_is_killed(
    cluster: Cluster[PostgresNode],
) -> None:
    node = cluster["alpha"]
    with ExitStack() as stack:
        sessions = [stack.enter_context(node.connect()) for _ in range(20)]
        backends = [session.info.backend_pid for session in sessions]
        with few_files():
            kill(node.place)
        assert not any(map(runs, backends))


def test_h82_a_frozen_server_is_killed_within_a_short_time(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    """Nothing is asked of it before: it would answer when the lease is over."""
    node = cluster["alpha"]
    pid = main_process(node)
    node.signal(signal.SIGSTOP)
    servers["alpha"].demote(planned=False, deadline=now() + 0.001)
    assert not runs(pid)


# --- the disk is full ------------------------------------------------------------------------


def test_a_primary_whose_disk_is_full_is_demoted(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark as a standby was written when there was room; so another one may follow."""
    pid = main_process(cluster["alpha"])

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zkelect.recipes.postgres.lifecycle.write_file", refuse)
    monkeypatch.setattr("zkelect.recipes.postgres.settings.write_file", refuse)
    assert servers["alpha"].demote(planned=False, deadline=now() + 1) is None
    assert not runs(pid)
    assert cluster["alpha"].place.signal.exists()


def test_a_primary_that_cannot_be_marked_is_not_called_demoted(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts it would start a primary."""
    cluster["alpha"].place.signal.unlink()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zkelect.recipes.postgres.lifecycle.write_file", refuse)
    with pytest.raises(OSError, match="No space left"):
        servers["alpha"].demote(planned=False, deadline=now() + 1)


# --- who asks is not let in ------------------------------------------------------------------


@pytest.mark.parametrize(
    "credentials",
    [
        "user=zkelect dbname=nosuch",
        "user=nosuch dbname=postgres",
        "user=zkelect dbname=postgres sslmode=require",
    ],
)
def test_a_server_that_does_not_let_us_in_may_take_writes(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres], credentials: str
) -> None:
    place = attrs.evolve(cluster["beta"].place, credentials=credentials)
    witness = Postgres(cluster["beta"].member(), place, domain="broken")
    assert servers["beta"].reach(cluster["alpha"].member()) is Answer.YES
    assert witness.reach(cluster["alpha"].member()) is Answer.UNKNOWN


def test_a_wrong_password_does_not_say_that_nobody_writes(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres], tmp_path: Path
) -> None:
    node = cluster["alpha"]
    (node.data / "pg_hba.conf").write_text("local all all trust\nhost all all all scram-sha-256\n")
    with node.connect(host=str(node.folder)) as session:
        session.execute("select pg_reload_conf()")
    asked = node.member()
    until(lambda: servers["beta"].reach(asked) is not Answer.YES, "it is asked for a password")
    assert servers["beta"].reach(asked) is Answer.UNKNOWN
    node.signal(signal.SIGSTOP)
    assert servers["beta"].reach(asked) is Answer.NO
    node.kill()
    assert servers["beta"].reach(asked) is Answer.NO


# --- names -----------------------------------------------------------------------------------


def test_a_name_may_have_quotes_spaces_and_backslashes(
    cluster: Cluster[PostgresNode], servers: dict[str, Postgres]
) -> None:
    name = 'o\'brien "two" \\ 3'
    odd = Postgres(
        attrs.evolve(cluster["beta"].member(), name=name),
        cluster["beta"].placed(slots=True),
        domain="broken",
    )
    follow(odd, servers["alpha"])
    alpha = cluster["alpha"]
    assert alpha.ask("select application_name from pg_stat_replication") == name
    servers["alpha"].require([name], soon())
    assert servers["alpha"].in_step() == {name}
    odd.close()


# --- two agents ------------------------------------------------------------------------------


def test_a_second_agent_of_one_server_is_refused(cluster: Cluster[PostgresNode]) -> None:
    node = cluster["beta"]
    first = subprocess.Popen(
        [sys.executable, "-c", _CLAIM, str(node.data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert first.stdin is not None
    assert first.stdout is not None
    second = Postgres(attrs.evolve(node.member(), name="twin"), node.place, domain="broken")
    try:
        assert first.stdout.readline() == b"claimed\n"
        with pytest.raises(Unfit, match="another agent looks after"):
            second.check()
    finally:
        first.communicate()
    second.check()
    second.close()


def test_a_server_that_answers_and_cannot_be_seen_here_is_refused(
    cluster: Cluster[PostgresNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in another container: it could be started twice, and killed by nobody."""
    node = cluster["beta"]
    monkeypatch.setattr("zkelect.recipes.postgres.checks.find_postmaster", lambda _: None)
    with pytest.raises(Unfit, match="shared process space"):
        Postgres(node.member(), node.place, domain="broken").check()
