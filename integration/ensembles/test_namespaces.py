"""Servers in namespaces: they are cut off and come back, and leave nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from election.waiting import until

from zkelect.errors import InvalidArgument, Misuse
from zkelect.testing.mending import mend
from zkelect.testing.namespaces import NamespaceEnsemble
from zkelect.testing.server import ask

if TYPE_CHECKING:
    from zkelect.testing import LocalServer
    from zkelect.testing.ensembles import FaultyEnsemble

LINKS = Path("/sys/class/net")


def test_an_isolated_leader_is_replaced_and_comes_back(ensemble: NamespaceEnsemble) -> None:
    old = ensemble.leader()
    ensemble.isolate(old)
    assert ask(ensemble.servers[old].address, "ruok") == ""
    assert ensemble.leader() != old
    ensemble.heal()
    ensemble.wait_ready()
    assert ensemble.servers[old].mode == "follower"


def test_a_parted_leader_gives_up_and_clients_still_reach_it(ensemble: NamespaceEnsemble) -> None:
    old = ensemble.leader()
    ensemble.partition({old}, {0, 1, 2} - {old})
    until(lambda: ensemble.servers[old].mode is None, "it has given up")
    assert ask(ensemble.servers[old].address, "ruok") == "imok"
    assert ensemble.leader() != old


def test_a_leader_that_is_not_heard_is_replaced(ensemble: NamespaceEnsemble) -> None:
    old = ensemble.leader()
    ensemble.partition({old}, {0, 1, 2} - {old}, one_way=True)
    until(lambda: ensemble.servers[old].mode is None, "it has given up")
    assert ensemble.leader() != old


def test_faults_add_up_and_outlast_a_restart(ensemble: NamespaceEnsemble) -> None:
    first, second, third = ensemble.servers
    ensemble.isolate(0)
    ensemble.isolate(1)
    assert [ask(each.address, "ruok") for each in (first, second, third)] == ["", "", "imok"]
    starts = bindings(first)
    first.kill()
    first.launch()
    until(lambda: bindings(first) > starts, "it listens again")
    assert ask(first.address, "ruok") == ""


def bindings(server: LocalServer) -> int:
    return server.log_path.read_text("utf-8").count("binding to port")


def test_a_mended_ensemble_serves_whatever_was_done_to_it(ensemble: NamespaceEnsemble) -> None:
    first, second, third = ensemble.servers
    first.kill()
    second.pause()
    ensemble.isolate(2)
    mend(ensemble)
    assert sorted(str(each.mode) for each in (first, second, third)) == [
        "follower",
        "follower",
        "leader",
    ]


def test_what_cannot_be_done_is_refused(ensemble: NamespaceEnsemble) -> None:
    with pytest.raises(InvalidArgument, match=r"index=3: an index of a server, 0 … 2"):
        ensemble.isolate(3)
    with pytest.raises(InvalidArgument, match="one=-1"):
        ensemble.partition({-1}, {0})
    with pytest.raises(InvalidArgument, match=r"without \[1\]"):
        ensemble.partition({0, 1}, {1, 2})
    for latency in (-0.1, 61.0, float("nan")):
        with pytest.raises(InvalidArgument, match="latency="):
            ensemble.slow(0, latency=latency)
    for loss in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidArgument, match="loss="):
            ensemble.slow(0, loss=loss)


def test_an_ensemble_can_be_started_again_and_then_has_no_faults() -> None:
    ensemble = NamespaceEnsemble(1)
    for _ in range(2):
        with ensemble:
            assert ensemble.servers[0].mode == "standalone"
            ensemble.isolate(0)
            assert ensemble.servers[0].mode is None
    with pytest.raises(Misuse, match="not started"):
        ensemble.heal()


# --- what is left behind ------------------------------------------------------------------------

PROGRAM = """
import json, signal, sys
from zkelect.testing.namespaces import NamespaceEnsemble
with NamespaceEnsemble(3) as ensemble:
    ensemble.isolate(0)
    ensemble.slow(1, latency=60.0)
    told = [server.pid for server in ensemble.servers]
    print(json.dumps([str(ensemble.directory), ensemble.hosts, told]), flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_process_that_ends_with_its_ensemble(number: signal.Signals) -> None:
    before = {link.name for link in LINKS.iterdir()}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        directory, hosts, pids = json.loads(process.stdout.readline())
        assert any(link.name.startswith("zk") for link in LINKS.iterdir())
        process.send_signal(number)
        process.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the servers end")
    until(lambda: not {link.name for link in LINKS.iterdir()} - before, "the link goes")
    assert hosts.startswith("198.1")
    assert Path(directory).exists() is (number is signal.SIGKILL)


# --- the fixture --------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", range(2))
def test_the_fixture_is_mended_after_each_test(
    turn: int, zookeeper_ensemble: FaultyEnsemble
) -> None:
    assert all(server.mode for server in zookeeper_ensemble.servers)
    zookeeper_ensemble.isolate(turn)
    zookeeper_ensemble.servers[turn + 1].kill()
