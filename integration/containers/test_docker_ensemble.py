"""Docker ensembles on a real engine: start, harm, break, mend, and leave nothing behind."""

from __future__ import annotations

import contextlib
import io
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN, until
from kazoo.client import KazooClient

from zkelect.errors import Misuse
from zkelect.testing import ServerFailed
from zkelect.testing.docker import DockerEnsemble
from zkelect.testing.docker_engine import ENSEMBLE_LABEL
from zkelect.testing.docker_errors import ImageNotFound
from zkelect.testing.netns import NetworkUnavailable
from zkelect.testing.server import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from docker import DockerClient

    from zkelect.testing.docker_server import DockerServer

pytestmark = pytest.mark.timeout(1200)  # the first one may have to build an image

SYN_SENT, SYN_RECEIVED = "02", "03"  # include/net/tcp_states.h

CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from zkelect.testing.docker import DockerEnsemble
zookeeper = DockerEnsemble(3, image=sys.argv[1])
print("starting", flush=True)
zookeeper.start()
print("started", flush=True)
"""


@pytest.fixture(autouse=True)
def kept_in_the_test_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def left_over(engine: DockerClient) -> Callable[[], Sequence[str]]:
    """Name the ensembles' containers and networks that were not there before the test."""

    def labelled() -> set[str]:
        label = {"label": ENSEMBLE_LABEL}
        containers = engine.api.containers(all=True, filters=label)
        networks = engine.api.networks(filters=label)
        return {each["Id"] for each in (*containers, *networks)}

    before = labelled()
    return lambda: sorted(labelled() - before)


@pytest.fixture(scope="module")
def one(image: str) -> Iterator[DockerEnsemble]:
    """A server that tests may end, if they start it again."""
    with DockerEnsemble(image=image) as started:
        yield started


@contextlib.contextmanager
def client(hosts: str) -> Iterator[KazooClient]:
    connected = KazooClient(hosts, timeout=4.0)
    connected.start(timeout=WITHIN)
    try:
        yield connected
    finally:
        connected.stop()
        connected.close()


# --- start and end -----------------------------------------------------------------------------


def test_three_servers_serve_and_leave_nothing_behind(
    image: str, left_over: Callable[[], Sequence[str]], engine: DockerClient
) -> None:
    volumes = engine.volumes.list()
    with DockerEnsemble(3, image=image) as zookeeper:
        assert sorted(server.mode for server in zookeeper.servers if server.mode) == [
            "follower",
            "follower",
            "leader",
        ]
        assert zookeeper.servers[zookeeper.leader()].mode == "leader"
        assert zookeeper.hosts == ",".join(server.address for server in zookeeper.servers)
        assert len(left_over()) == 3 + 3 + 1  # servers, their networks' owners, the network
        for server in zookeeper.servers:
            with client(server.address) as kazoo:
                kazoo.ensure_path("/a")
    assert left_over() == []
    assert engine.volumes.list() == volumes
    assert zookeeper.hosts == ""


def test_a_server_comes_back_with_its_data_at_its_address(one: DockerEnsemble) -> None:
    (server,) = one.servers
    with client(one.hosts) as kazoo:
        kazoo.create("/kept", b"1")
    for end in (server.kill, server.stop):
        end()
        assert (server.running, server.mode) == (False, None)
        server.start()
        server.wait_ready()
        with client(one.hosts) as kazoo:
            assert kazoo.get("/kept")[0] == b"1"
    assert one.leader() == 0


def test_a_paused_server_answers_nobody_until_it_goes_on(one: DockerEnsemble) -> None:
    (server,) = one.servers
    server.pause()
    server.pause()
    assert (server.running, server.paused, server.mode) == (True, True, None)
    assert ask(server.address, "ruok") == ""
    server.resume()
    server.resume()
    server.wait_ready()
    for end in (server.stop, server.kill):
        server.pause()
        end()
        assert not server.running
        server.start()
        server.wait_ready()


def test_settings_reach_the_server(image: str) -> None:
    with DockerEnsemble(
        image=image,
        tick_time=0.5,
        max_session_timeout=7.0,
        config={"maxClientCnxns": "77"},
        java_options=["-Duser.home=/chosen"],
    ) as zookeeper:
        told = ask(zookeeper.hosts, "conf").splitlines()
        wanted = {"tickTime=500", "minSessionTimeout=1000", "maxSessionTimeout=7000"}
        assert {*wanted, "maxClientCnxns=77"} <= set(told)
        assert "user.home=/chosen" in ask(zookeeper.hosts, "envi").splitlines()


def test_misuse_is_told(image: str) -> None:
    zookeeper = DockerEnsemble(image=image)
    with pytest.raises(Misuse, match="not started"):
        zookeeper.leader()
    with zookeeper:
        (server,) = zookeeper.servers
        with pytest.raises(Misuse, match="started already"):
            zookeeper.start()
        with pytest.raises(Misuse, match="runs already"):
            server.start()
        server.kill()
        server.kill()
        server.stop()
        for call in (server.pause, server.resume):
            with pytest.raises(Misuse, match="does not run"):
                call()
    zookeeper.stop()
    with pytest.raises(Misuse, match="has been stopped"):
        server.launch()
    for fault in (zookeeper.heal, lambda: zookeeper.isolate(0)):
        with pytest.raises(Misuse, match="not started"):
            fault()


# --- what a person sees ------------------------------------------------------------------------


def test_a_server_that_does_not_start_shows_its_log(
    image: str, left_over: Callable[[], Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    zookeeper = DockerEnsemble(image=image, config={"initLimit": "no-number"})
    with pytest.raises(ServerFailed, match="no-number") as failed:
        zookeeper.start()
    assert "ended before it served (exit status" in str(failed.value)
    assert "no-number" in failed.value.log_path.read_text("utf-8")
    assert str(failed.value.log_path.parent) in capsys.readouterr().err
    assert left_over() == []


def test_an_image_that_cannot_be_had(left_over: Callable[[], Sequence[str]]) -> None:
    with pytest.raises(ImageNotFound, match=r"could not be pulled: .*image=…"):
        DockerEnsemble(image="localhost:1/no-such-image:1").start()
    assert left_over() == []


def test_logs_are_kept_when_the_block_ends_with_an_error(
    image: str, left_over: Callable[[], Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    zookeeper = DockerEnsemble(image=image)
    with contextlib.suppress(ValueError), zookeeper:
        (server,) = zookeeper.servers
        raise ValueError("whatever")
    kept = capsys.readouterr().err
    assert str(server.log_path.parent) in kept
    assert "binding to port" in server.log_path.read_text("utf-8")
    assert left_over() == []


@contextlib.contextmanager
def child(image: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process that starts three servers and stops none."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, image],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_process_that_forgets_to_stop_leaves_nothing(
    image: str, left_over: Callable[[], Sequence[str]]
) -> None:
    with child(image) as process:
        printed, errors = process.communicate(timeout=120)
    assert (printed.split(), errors) == (["starting", "started"], "")
    assert left_over() == []


@pytest.mark.parametrize("made", [1, 3, 6])
def test_control_c_in_start_leaves_nothing(
    image: str, left_over: Callable[[], Sequence[str]], made: int
) -> None:
    with child(image) as process:
        until(lambda: len(left_over()) >= made, "the first things are there")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert errors.endswith("KeyboardInterrupt\n")
    assert left_over() == []


# --- a network that is broken ------------------------------------------------------------------


def followers(ensemble: DockerEnsemble, leader: int) -> int:
    """How many the leader has, by its own word; -1: it is none."""
    told = dict(
        line.split("\t") for line in ask(ensemble.servers[leader].address, "mntr").splitlines()
        if line.count("\t") == 1
    )  # fmt: skip
    return int(float(told.get("zk_synced_followers", -1)))


def reachable(ensemble: DockerEnsemble, index: int) -> bool:
    return ask(ensemble.servers[index].address, "ruok") == "imok"


class Peer:
    """A server as its peers see it: by its address on their network."""

    def __init__(self, engine: DockerClient, server: DockerServer) -> None:
        owner = engine.containers.get(server.container.replace("server", "network"))
        (network,) = owner.attrs["NetworkSettings"]["Networks"].values()
        self.address: str = network["IPAddress"]
        self._container = engine.containers.get(server.container)

    def knock(self, door: Peer) -> bool:
        """Send the first packet of a connection; whether it arrives. No answer may come back."""
        command = f"exec 3<>/dev/tcp/{door.address}/2181"
        self._container.exec_run(["bash", "-c", command], detach=True)
        until(lambda: SYN_SENT in self._states(door), "it is sent")
        return SYN_RECEIVED in door._states(self)

    def _states(self, other: Peer) -> set[str]:
        """The states of the connections to another: proc(5), /proc/net/tcp."""
        address = socket.inet_aton(other.address)[::-1].hex().upper()
        table = self._container.exec_run(["cat", "/proc/net/tcp"]).output
        assert isinstance(table, bytes)  # it is not streamed
        rows = [line.split() for line in table.decode("ascii").splitlines()[1:]]
        return {row[3] for row in rows if row[2].startswith(address)}


def test_an_isolated_follower_reaches_neither_peers_nor_clients(ensemble: DockerEnsemble) -> None:
    leader = ensemble.leader()
    cut = (leader + 1) % 3
    assert followers(ensemble, leader) == 2
    ensemble.isolate(cut)
    assert not reachable(ensemble, cut)
    until(lambda: followers(ensemble, leader) == 1, "the leader has lost one")
    assert ensemble.leader() == leader
    ensemble.heal()
    assert reachable(ensemble, cut)
    until(lambda: followers(ensemble, leader) == 2, "it has it back")


def test_clients_reach_both_sides_of_a_partition(
    ensemble: DockerEnsemble, engine: DockerClient
) -> None:
    old = ensemble.leader()
    ensemble.partition({old}, {0, 1, 2} - {old})
    few, many = (Peer(engine, ensemble.servers[index]) for index in (old, (old + 1) % 3))
    assert not few.knock(many)
    assert not many.knock(few)
    until(lambda: ensemble.servers[old].mode is None, "the few know that they are few")
    assert all(reachable(ensemble, index) for index in range(3))
    assert ensemble.leader() != old
    with client(ensemble.hosts) as kazoo:
        kazoo.ensure_path("/by-the-many")
    ensemble.heal()
    ensemble.wait_ready()
    with client(ensemble.servers[old].address) as kazoo:
        kazoo.sync("/")
        assert kazoo.exists("/by-the-many")


def test_one_way_drops_what_one_side_sends(ensemble: DockerEnsemble, engine: DockerClient) -> None:
    leader = ensemble.leader()
    deaf = (leader + 1) % 3
    ensemble.partition({leader}, {deaf}, one_way=True)
    mute, listener = (Peer(engine, ensemble.servers[index]) for index in (leader, deaf))
    assert listener.knock(mute)
    assert not mute.knock(listener)
    until(lambda: ensemble.servers[deaf].mode is None, "it does not hear the leader any more")
    assert ensemble.leader() == leader
    assert reachable(ensemble, deaf)


def test_faults_outlast_a_restart_until_they_are_healed(ensemble: DockerEnsemble) -> None:
    cut = (ensemble.leader() + 1) % 3
    server = ensemble.servers[cut]
    ensemble.isolate(cut)
    server.kill()
    server.launch()
    with pytest.raises(ServerFailed, match="has not served within 3 s"):
        server.wait_ready(timeout=3.0)
    assert server.running
    ensemble.heal()
    server.wait_ready()


def asked(ensemble: DockerEnsemble, index: int) -> float:
    """Seconds until a server has answered."""
    began = time.monotonic()
    until(lambda: reachable(ensemble, index), "the server answers")
    return time.monotonic() - began


def test_a_slow_server_answers_later(ensemble: DockerEnsemble) -> None:
    """Two packets of the server's, at least, are waited for: its side of the handshake too."""
    slow = (ensemble.leader() + 1) % 3
    for latency in (0.3, 0.2):
        ensemble.slow(slow, latency=latency)
        assert asked(ensemble, slow) >= latency
    assert ensemble.servers[slow].mode == "follower"
    ensemble.slow(slow, latency=0.0)
    assert min(asked(ensemble, slow) for _ in range(5)) < 0.2
    ensemble.slow(slow, latency=0.2)
    ensemble.heal()
    assert min(asked(ensemble, slow) for _ in range(5)) < 0.2


def test_a_server_that_loses_all_packets_is_silent(ensemble: DockerEnsemble) -> None:
    lossy = (ensemble.leader() + 1) % 3
    ensemble.slow(lossy, latency=0.0, loss=1.0)
    assert not reachable(ensemble, lossy)
    ensemble.slow(lossy, latency=0.0, loss=0.0)
    until(lambda: reachable(ensemble, lossy), "it answers again")


# --- images without the tools ------------------------------------------------------------------


@pytest.fixture(scope="module")
def build(engine: DockerClient) -> Iterator[Callable[[str], str]]:
    """Build an image that is like no other; in the end it goes, with all that came of it."""

    def build(lines: str) -> str:
        text = f"{lines}\nLABEL zkelect.tests={uuid.uuid4()}\n".encode()
        image, _ = engine.images.build(fileobj=io.BytesIO(text), rm=True, network_mode="none")
        return str(image.id)

    yield build
    for tools in engine.images.list("zkelect-tools", filters={"label": "zkelect.tests"}):
        engine.images.remove(str(tools.id), force=True)
    engine.images.prune({"dangling": True, "label": "zkelect.tests"})


@pytest.fixture(scope="module")
def bare_image(build: Callable[[str], str], image: str) -> str:
    """An image without iptables and tc, as the official one is."""
    return build(f"FROM {image}\nRUN dpkg --purge --force-depends iptables iproute2 || true")


@pytest.fixture(scope="module")
def lost_image(build: Callable[[str], str], bare_image: str) -> str:
    """An image to which nothing can be added either."""
    return build(f"FROM {bare_image}\nRUN rm -f /usr/bin/apt-get")


def test_tools_are_added_to_an_image_without_them(bare_image: str) -> None:
    with DockerEnsemble(image=bare_image) as zookeeper:
        zookeeper.isolate(0)
        assert not reachable(zookeeper, 0)
        zookeeper.heal()
        assert reachable(zookeeper, 0)


def test_tools_of_another_image(lost_image: str, image: str) -> None:
    with DockerEnsemble(image=lost_image, tools_image=image) as zookeeper:
        zookeeper.isolate(0)
        assert not reachable(zookeeper, 0)


def test_tools_that_cannot_be_had_are_told(
    lost_image: str, left_over: Callable[[], Sequence[str]]
) -> None:
    with DockerEnsemble(image=lost_image) as zookeeper:
        for fault in (lambda: zookeeper.isolate(0), lambda: zookeeper.slow(0)):
            with pytest.raises(NetworkUnavailable, match=r"lacks one of .*tools_image=…"):
                fault()
        zookeeper.heal()
        assert reachable(zookeeper, 0)
    assert left_over() == []
