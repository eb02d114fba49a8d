"""A server is rewound from one that is set up otherwise; its agent is restarted meanwhile (H82)."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import attrs
import pytest
from election.waiting import until
from recipes.acts import follow, resources, soon, take_over
from recipes.cluster import Cluster
from recipes.postgres_node import PostgresNode
from servers.packages import program

from zkelect.recipes.clock import now
from zkelect.recipes.member import Role
from zkelect.recipes.postgres import Postgres
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zkelect.recipes.postgres import Place

pytestmark = pytest.mark.timeout(300)

LATIN = b"# gr\xfc\xdfe\n"


@pytest.fixture
def cluster() -> Iterator[Cluster[PostgresNode]]:
    with Cluster(PostgresNode, ["alpha", "beta"]) as made:
        yield made


def part(cluster: Cluster[PostgresNode], servers: dict[str, Postgres]) -> None:
    """Let beta be the primary, and alpha have a table that beta does not have."""
    follow(servers["beta"], servers["alpha"])
    cluster["alpha"].ask("create table shared (number int)")
    until(lambda: cluster["beta"].ask("select to_regclass('shared')::text"), "beta has all of it")
    cluster["beta"].cut_off()
    cluster["alpha"].ask("create table apart (number int)")
    cluster["alpha"].kill()
    take_over(servers["beta"])


def give(node: PostgresNode, name: str, content: bytes, mode: int = 0o600) -> Path:
    """Write a file into its data directory, as the data's owner would."""
    file, owner = node.data / name, node.data.stat()
    if not file.parent.exists():
        file.parent.mkdir()
        os.chown(file.parent, owner.st_uid, owner.st_gid)
    file.write_bytes(content)
    file.chmod(mode)
    os.chown(file, owner.st_uid, owner.st_gid)
    return file


def test_h82_what_is_of_this_server_alone_is_kept(cluster: Cluster[PostgresNode]) -> None:
    """In the data directory; the other one has files of the same names, or none."""
    alpha, beta = cluster["alpha"], cluster["beta"]
    give(beta, "server.key", b"theirs")
    give(beta, "conf.d/10.conf", b"work_mem = '7MB'\n")
    mine = {
        give(alpha, "server.key", b"\x00ours"): 0o600,
        give(alpha, "conf.d/10.conf", b"work_mem = '8MB'\n" + LATIN): 0o600,
        give(alpha, "conf.d/20.conf", b"# nothing yet\n", 0o640): 0o640,
        give(alpha, "mine.conf", b"# nothing yet\n"): 0o600,
        give(alpha, "rules.hba", (alpha.data / "pg_hba.conf").read_bytes()): 0o600,
    }
    with (alpha.data / "postgresql.conf").open("ab") as file:
        file.write(LATIN + b"include_dir 'conf.d'\ninclude 'mine.conf'\n")
        file.write(f"hba_file = '{alpha.data / 'rules.hba'}'\n".encode())
    before = {file: file.read_bytes() for file in (*mine, alpha.data / "postgresql.conf")}
    alpha.stop()
    alpha.start()
    with resources(cluster) as servers:
        part(cluster, servers)
        servers["alpha"].check()
        follow(servers["alpha"], servers["beta"])
        assert alpha.ask("select to_regclass('apart')::text") is None
        assert alpha.ask("show work_mem") == "8MB"
    assert {file: file.read_bytes() for file in before} == before
    assert {file: stat.S_IMODE(file.stat().st_mode) for file in mine} == mine
    owner = alpha.data.stat().st_uid
    assert {file.stat().st_uid for file in before} == {owner}


def holding(node: PostgresNode) -> tuple[Place, Path]:
    """Return a place whose pg_rewind, once it has begun, waits until a pipe is written to."""
    folder, pipe = node.folder / "programs", node.folder / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    for name in ("pg_ctl", "pg_controldata"):
        (folder / name).symlink_to(program(name))
    script = folder / "pg_rewind"
    script.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *--dry-run) ;; *) read line < {pipe};; esac\n'
        f'exec {program("pg_rewind")} "$@"\n'
    )
    script.chmod(0o755)
    return attrs.evolve(node.place, programs=folder), pipe


@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")  # it outlives who has begun it
def test_h82_an_agent_that_is_restarted_goes_on_with_the_rewinding(
    cluster: Cluster[PostgresNode],
) -> None:
    alpha = cluster["alpha"]
    with resources(cluster) as servers:
        part(cluster, servers)
        place, pipe = holding(alpha)
        before, after = (Postgres(alpha.member(), place, domain="acts") for _ in range(2))
        primary = servers["beta"].member
        before.check()
        with pytest.raises(NotNow, match="pg_rewind"):
            before.follow(primary, None, soon())
        after.check()
        with pytest.raises(NotNow):
            after.freeze(None, now() + 1)
        assert alpha.pid is None
        pipe.write_text("go on\n")
        follow(after, servers["beta"])
        assert after.observe().role is Role.REPLICA
        assert alpha.ask("select to_regclass('apart')::text") is None
