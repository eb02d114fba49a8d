"""Local ensembles on the real server: start, harm, mend, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient

from zkelect.errors import Misuse
from zkelect.testing import LocalEnsemble, ServerFailed, find_server, local
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHILD = """
import sys
from zkelect.testing import LocalEnsemble
zookeeper = LocalEnsemble()
zookeeper.start()
print(zookeeper.servers[0].pid, zookeeper.directory, zookeeper.hosts, flush=True)
sys.stdin.read()
"""

FORKING = """
import os
from zkelect.testing import LocalEnsemble
with LocalEnsemble() as zookeeper:
    child = os.fork()
    if child:  # the child takes the usual way out, with all that runs at exit
        os.waitpid(child, 0)
        print("the child has left; directory: ", end="")
        print(zookeeper.directory.exists(), zookeeper.servers[0].mode, sep=", server: ")
    else:
        zookeeper = None
        raise SystemExit
"""


@pytest.fixture(scope="module")
def three() -> Iterator[LocalEnsemble]:
    with LocalEnsemble(servers=3) as zookeeper:
        yield zookeeper


@contextlib.contextmanager
def client(hosts: str) -> Iterator[KazooClient]:
    connected = KazooClient(hosts, timeout=4.0)
    connected.start()
    try:
        yield connected
    finally:
        connected.stop()
        connected.close()


@contextlib.contextmanager
def child() -> Iterator[tuple[subprocess.Popen[str], int, Path, str]]:
    """A Python process with an ensemble of its own; its server's pid, directory, hosts."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid, directory, hosts = process.stdout.readline().split()
        yield process, int(pid), Path(directory), hosts


def ended(pid: int, within: float = 30.0) -> bool:
    """Wait until a process that is no child of ours has ended."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within)[0])
    finally:
        os.close(watched)


def until(condition: Callable[[], bool], within: float = 30.0) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# --- one server ---------------------------------------------------------------------------


def test_one_server_serves_and_leaves_nothing_behind() -> None:
    with LocalEnsemble() as zookeeper:
        (server,) = zookeeper.servers
        assert zookeeper.hosts == server.address
        assert (zookeeper.leader(), server.mode, server.running) == (0, "standalone", True)
        pid, directory = server.pid, zookeeper.directory
        with client(zookeeper.hosts) as kazoo:
            kazoo.create("/a", b"1")
        assert "binding to port /127.0.0.1" in server.log_path.read_text("utf-8")
    assert not Path(f"/proc/{pid}").exists()
    assert not directory.exists()
    assert (zookeeper.hosts, server.running, server.pid) == ("", False, None)


def test_a_server_comes_back_with_its_data_at_its_address() -> None:
    with LocalEnsemble() as zookeeper:
        (server,) = zookeeper.servers
        with client(zookeeper.hosts) as kazoo:
            kazoo.create("/a", b"1")
        for end in (server.kill, server.stop):
            end()
            assert (server.running, server.mode) == (False, None)
            server.start()
            server.wait_ready()
            with client(zookeeper.hosts) as kazoo:
                assert kazoo.get("/a")[0] == b"1"


def test_settings_reach_the_server() -> None:
    with LocalEnsemble(tick_time=0.5, max_session_timeout=7.0, config={"snapCount": "77"}) as one:
        with socket.create_connection(("127.0.0.1", int(one.hosts.split(":")[1]))) as connection:
            connection.sendall(b"conf")
            told = connection.makefile().read().splitlines()
        assert {"tickTime=500", "minSessionTimeout=1000", "maxSessionTimeout=7000"} <= set(told)
        assert "snapCount=77" in (one.directory / "server-1" / "zoo.cfg").read_text("utf-8")


def test_misuse_is_told() -> None:
    with LocalEnsemble() as zookeeper:
        (server,) = zookeeper.servers
        with pytest.raises(Misuse, match="started already"):
            zookeeper.start()
        with pytest.raises(Misuse, match="runs already"):
            server.start()
        server.kill()
        with pytest.raises(Misuse, match="does not run"):
            server.pause()
    with pytest.raises(Misuse, match="has been stopped"):
        server.start()


def test_an_ensemble_can_be_started_again() -> None:
    zookeeper = LocalEnsemble()
    for _ in range(2):
        with zookeeper:
            assert zookeeper.servers[0].mode == "standalone"


# --- three servers ------------------------------------------------------------------------


def test_three_servers_elect_a_leader(three: LocalEnsemble) -> None:
    modes = sorted(str(server.mode) for server in three.servers)
    assert modes == ["follower", "follower", "leader"]
    assert three.servers[three.leader()].mode == "leader"
    assert three.hosts.count(",") == 2


def test_a_killed_leader_is_replaced_and_comes_back(three: LocalEnsemble) -> None:
    old = three.leader()
    with client(three.hosts) as kazoo:
        kazoo.create("/kept", b"")
    three.servers[old].kill()
    assert three.leader() != old
    three.servers[old].start()
    three.wait_ready()
    assert three.servers[old].mode == "follower"
    with client(three.servers[old].address) as kazoo:
        kazoo.sync("/")
        assert kazoo.exists("/kept")


def test_a_paused_leader_is_replaced_and_goes_on(three: LocalEnsemble) -> None:
    old = three.leader()
    paused = three.servers[old]
    paused.pause()
    assert (paused.running, paused.paused, paused.mode) == (True, True, None)
    assert Path(f"/proc/{paused.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "T"
    new = three.leader()
    assert new != old
    paused.resume()
    assert three.leader() == new
    assert until(lambda: paused.mode == "follower")
    three.wait_ready()


def test_a_server_without_a_majority_runs_but_does_not_serve(three: LocalEnsemble) -> None:
    for server in three.servers:
        server.stop()
    first, *others = three.servers
    first.start()
    assert (first.running, first.mode) == (True, None)
    with pytest.raises(ServerFailed, match=r"has not served within 0\.1 s"):
        first.wait_ready(timeout=0.1)
    for server in others:
        server.start()
    three.wait_ready()
    assert three.servers[three.leader()].running


# --- failures keep the logs ---------------------------------------------------------------


def test_an_error_in_the_block_keeps_the_logs(capfd: pytest.CaptureFixture[str]) -> None:
    zookeeper = LocalEnsemble()
    with pytest.raises(ZeroDivisionError), zookeeper:
        _ = 1 / 0
    log = zookeeper.directory / "server-1" / "server.log"
    assert "binding to port" in log.read_text("utf-8")
    assert str(zookeeper.directory) in capfd.readouterr().err
    shutil.rmtree(zookeeper.directory)


@pytest.mark.parametrize("way_out", [KeyboardInterrupt, SystemExit])
def test_being_told_to_stop_is_no_failure(way_out: type[BaseException]) -> None:
    zookeeper = LocalEnsemble()
    with pytest.raises(way_out), zookeeper:
        raise way_out
    assert not zookeeper.directory.exists()


class Impatient(ThreadPoolExecutor):
    """A thread that has taken a task when Ctrl-C comes, and nobody has heard of it yet."""

    def submit(self, *args: Any, **options: Any) -> Any:
        super().submit(*args, **options)
        raise KeyboardInterrupt


def test_ctrl_c_while_a_server_is_in_the_hands_of_its_thread_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[subprocess.Popen[bytes]] = []

    def make(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        made.append(popen(*args, **options))
        return made[-1]

    popen = subprocess.Popen
    monkeypatch.setattr("zkelect.testing.server.subprocess.Popen", make)
    monkeypatch.setattr("zkelect.testing.local.ThreadPoolExecutor", Impatient)
    ensemble = LocalEnsemble()
    with pytest.raises(KeyboardInterrupt):
        ensemble.start()
    assert [process.returncode for process in made] == [-signal.SIGKILL]
    assert not ensemble.directory.exists()


def test_a_server_that_does_not_start_shows_its_log(capfd: pytest.CaptureFixture[str]) -> None:
    zookeeper = LocalEnsemble(config={"tickTime": "soon"})
    with pytest.raises(ServerFailed, match="ended before it served") as caught:
        zookeeper.start()
    assert 'For input string: "soon"' in str(caught.value)
    assert caught.value.log_path.exists()
    assert str(zookeeper.directory) in capfd.readouterr().err
    assert zookeeper.servers == ()
    shutil.rmtree(zookeeper.directory)


def test_a_server_that_does_not_start_in_time_is_told_and_killed() -> None:
    zookeeper = LocalEnsemble(start_timeout=0.001)
    with pytest.raises(ServerFailed, match=r"has not served within 0\.\d+ s"):
        zookeeper.start()
    (log,) = zookeeper.directory.glob("*/server.log")
    assert log.exists()
    shutil.rmtree(zookeeper.directory)


# --- ports --------------------------------------------------------------------------------


def test_taken_ports_are_left_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    thieves: list[socket.socket] = []

    class StolenPort(Port):
        """The first one is listened on, as by a program that sets SO_REUSEADDR too."""

        def __init__(self) -> None:
            super().__init__()
            if not thieves:
                thieves.append(self.listen())

    monkeypatch.setattr(local, "Port", StolenPort)
    with LocalEnsemble() as zookeeper:
        (thief,) = thieves
        assert zookeeper.hosts != f"127.0.0.1:{thief.getsockname()[1]}"
        assert zookeeper.servers[0].mode == "standalone"
    thief.close()


def test_ports_that_are_always_taken_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as thieves:

        class StolenPort(Port):
            def __init__(self) -> None:
                super().__init__()
                thieves.enter_context(self.listen())

        monkeypatch.setattr(local, "Port", StolenPort)
        zookeeper = LocalEnsemble()
        with pytest.raises(ServerFailed, match="Address already in use") as caught:
            zookeeper.start()
    assert caught.value.port_taken
    shutil.rmtree(zookeeper.directory)


def test_a_held_port_is_refused_given_to_nobody_and_free_for_its_server() -> None:
    port = Port()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port.number))
    with socket.socket() as rival, pytest.raises(OSError, match="Address already in use"):
        rival.bind(("127.0.0.1", port.number))
    for _ in range(2):
        with port.listen(), socket.create_connection(("127.0.0.1", port.number)):
            pass
    port.release()
    with socket.socket() as successor:
        successor.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        successor.bind(("127.0.0.1", port.number))


def test_ensembles_start_side_by_side() -> None:
    with ThreadPoolExecutor(3) as pool, contextlib.ExitStack() as stack:
        running = list(pool.map(stack.enter_context, [LocalEnsemble() for _ in range(3)]))
        assert len({zookeeper.hosts for zookeeper in running}) == 3
        assert [zookeeper.servers[0].mode for zookeeper in running] == ["standalone"] * 3


def test_processes_use_ensembles_side_by_side() -> None:
    with contextlib.ExitStack() as stack:
        hosts = {stack.enter_context(child())[3] for _ in range(3)}
        assert len(hosts) == 3
        for each in hosts:
            with client(each) as kazoo:
                assert kazoo.exists("/zookeeper")


# --- no orphans ---------------------------------------------------------------------------


def test_a_killed_program_leaves_no_server() -> None:
    with child() as (process, server, directory, _):
        process.kill()
        assert ended(server)
    shutil.rmtree(directory)


def test_a_program_killed_with_its_server_paused_leaves_no_server() -> None:
    with child() as (process, server, directory, _):
        os.kill(server, signal.SIGSTOP)
        process.kill()
        assert ended(server)
    shutil.rmtree(directory)


def test_a_program_that_forgets_to_stop_leaves_nothing() -> None:
    with child() as (process, server, directory, _):
        process.communicate()
        assert process.returncode == 0
        assert ended(server)
        assert not directory.exists()


def test_a_server_outlives_the_thread_that_started_it() -> None:
    zookeeper = LocalEnsemble()
    starter = threading.Thread(target=zookeeper.start)
    starter.start()
    starter.join()
    assert until(lambda: not Path(f"/proc/self/task/{starter.native_id}").exists())
    assert zookeeper.servers[0].mode == "standalone"
    zookeeper.stop()


def test_a_forked_process_does_not_delete_its_parents_data() -> None:
    program = [sys.executable, "-c", FORKING]
    told = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert told == "the child has left; directory: True, server: standalone\n"


# --- a release unpacked somewhere ---------------------------------------------------------


def test_a_release_in_zookeeper_home_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    for entry in find_server().class_path:
        folder, _, name = entry.rpartition("/")
        for jar in Path(folder).glob(name if name != "*" else "*.jar"):
            (tmp_path / "lib" / jar.name).symlink_to(jar)
    monkeypatch.setenv("ZOOKEEPER_HOME", str(tmp_path))
    with LocalEnsemble() as zookeeper:
        command = Path(f"/proc/{zookeeper.servers[0].pid}/cmdline").read_text("utf-8")
        assert f"{tmp_path}/lib/*" in command
        assert zookeeper.servers[0].mode == "standalone"
