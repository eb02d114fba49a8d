"""The servers that the other tests stand on: they hold what their docstrings say."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import psycopg
import pytest
from servers import packages
from servers.mariadb import MariaDb
from servers.pgbouncer import PgBouncer
from servers.postgresql import PostgreSql
from servers.process import ServerFailed, ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

_ORPHAN = """\
import os, signal
from servers.{module} import {kind}
with {kind}() as server:
    print(server.process.pid, server.process.log.parent, flush=True)
    input()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("module", "kind"), [("postgresql", "PostgreSql"), ("mariadb", "MariaDb")])
def test_a_server_dies_with_its_starter(module: str, kind: str) -> None:
    path = os.pathsep.join(filter(None, map(str, sys.path)))
    with subprocess.Popen(
        [sys.executable, "-c", _ORPHAN.format(module=module, kind=kind)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        pid, _, directory = starter.stdout.readline().strip().partition(" ")
        server = os.pidfd_open(int(pid))
        print(file=starter.stdin, flush=True)
        assert select.select([server], [], [], 60.0)[0]
    os.close(server)
    shutil.rmtree(directory)  # which nobody was left to delete


def test_a_server_that_does_not_start_is_told_with_its_log(tmp_path: Path) -> None:
    process = ServerProcess(["/bin/sh", "-c", "echo out of luck; exit 3"], directory=tmp_path)
    with pytest.raises(ServerFailed, match=r"ended before it answered.*\n.*out of luck"):
        process.start(lambda: False)


def test_a_standby_follows_and_is_promoted() -> None:
    with PostgreSql() as primary, primary.standby() as standby:
        primary.ask("create table t as select 5 as n")
        standby.wait_replayed(primary)
        assert standby.ask("select n from t") == 5
        assert standby.ask("select pg_is_in_recovery()")
        primary.kill()
        standby.promote()
        assert not standby.ask("select pg_is_in_recovery()")
        primary.start()
        assert primary.ask("select n from t") == 5


def test_a_replica_follows() -> None:
    with MariaDb() as primary, MariaDb() as replica:
        replica.follow(primary)
        primary.ask("create table test.t (n int)")
        primary.ask("insert into test.t values (5)")
        replica.wait_replayed(primary)
        assert replica.ask("select n from test.t") == 5
        primary.kill()
        primary.start()
        assert primary.ask("select n from test.t") == 5


def test_a_pool_in_statement_mode_ends_transactions(postgresql: PostgreSql) -> None:
    with (
        PgBouncer(postgresql, "statement") as pool,
        pool.connect() as connection,
        pytest.raises(psycopg.Error, match="transaction blocks not allowed"),
    ):
        connection.execute("begin")


def test_what_is_missing_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packages._PACKAGES, "no-such-server", "its-package")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(packages.Missing, match=r"apt-get install .* its-package"):
        packages.install()
    with pytest.raises(packages.Missing, match="no-such-server"):
        packages.program("no-such-server")
    packages.install("util-linux")  # which is here; the others are not asked for
    with pytest.raises(ValueError, match="not known here: nonsense"):
        packages.install("nonsense")
