"""Bad input: told with the value and the right form, before anything is created."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

import zkelect
from zkelect.session import wire
from zkelect.testing import Forwarder, LocalEnsemble
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Campaign, Operator

T = 2.0


@pytest.fixture
def port() -> Iterator[Port]:
    """A port that refuses connections until somebody listens on it."""
    port = Port()
    yield port
    port.release()


# --- arguments ---------------------------------------------------------------------------------


@pytest.fixture
def untouched(operator: Operator) -> Iterator[None]:
    """Afterwards the tree is the same as before."""
    before = sorted(operator.kazoo.get_children("/")), operator.kazoo.get("/")[1].cversion
    yield
    operator.kazoo.sync("/")
    after = sorted(operator.kazoo.get_children("/")), operator.kazoo.get("/")[1].cversion
    assert after == before


@pytest.mark.usefixtures("untouched")
def test_a_missing_chroot_is_told_with_the_command_that_makes_it(zookeeper: LocalEnsemble) -> None:
    with pytest.raises(zkelect.InvalidArgument) as refused:
        zkelect.connect(f"{zookeeper.hosts}/not/there", session_timeout=T, tick_time=0.2)
    assert refused.value.argument == "hosts"
    assert "/not/there does not exist" in str(refused.value)
    assert "create /not/there" in str(refused.value)


def test_a_chroot_that_exists_holds_everything(
    zookeeper: LocalEnsemble, operator: Operator, path: str
) -> None:
    chroot = "/app-of-its-own"
    operator.kazoo.ensure_path(chroot)
    with zkelect.connect(f"{zookeeper.hosts}{chroot}", session_timeout=T, tick_time=0.2) as session:
        zkelect.Election(session, path).run(lambda _: None, timeout=10.0)
    assert operator.kazoo.exists(f"{chroot}{path}")
    assert not operator.kazoo.exists(path)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("wrong", "name", "argument", "told"),
    [
        ("/", "A", "path", "the root cannot hold an election"),
        ("elections/x", "A", "path", "a relative path"),
        ("/elections//x", "A", "path", "an empty part"),
        ("/elections/../x", "A", "path", "not resolved"),
        ("/elections/x\0", "A", "path", "a character ZooKeeper does not allow"),
        ("/zookeeper/x", "A", "path", "belongs to the servers"),
        ("/elections/x.zkelect", "A", "path", "kept for records"),
        ("/elections/x", "é" * 4097, "name", "at most 8192 bytes, this has 8194"),
        ("/elections/x", "\udcff", "name", "UTF-8"),
    ],
)
def test_a_path_or_name_that_cannot_be_is_refused_before_any_request(
    wrong: str, name: str, argument: str, told: str, cast: Callable[..., Actor]
) -> None:
    a = cast("A")
    before = a.forwarder.requests
    with pytest.raises(zkelect.InvalidArgument, match=told) as refused:
        zkelect.Election(a.session, wrong, name=name)
    assert refused.value.argument == argument
    assert refused.value.value == (wrong if argument == "path" else name)
    assert a.forwarder.requests == before


def test_the_longest_name_is_kept_whole(cast: Callable[..., Actor]) -> None:
    a = cast("é" * 4096)
    a.lead()
    leader = a.election.leader()
    assert leader is not None and leader.name == "é" * 4096


@pytest.mark.usefixtures("untouched")
def test_a_session_timeout_too_short_for_a_lease_is_refused(zookeeper: LocalEnsemble) -> None:
    with pytest.raises(zkelect.InvalidArgument, match=r"session_timeout=0\.5: seconds from 0\.8"):
        zkelect.connect(zookeeper.hosts, session_timeout=0.5, tick_time=0.2)


def test_a_granted_timeout_too_short_for_a_lease_is_refused(
    operate: Callable[[str], Operator],
) -> None:
    with LocalEnsemble(min_session_timeout=0.4, max_session_timeout=0.6) as stingy:
        with pytest.raises(zkelect.InvalidArgument) as refused:
            zkelect.connect(stingy.hosts, session_timeout=T, tick_time=0.2)
        told = str(refused.value)
        assert refused.value.argument == "session_timeout"
        assert "granted 0.6 s" in told and "needs 0.8 s" in told and "maxSessionTimeout" in told
        assert operate(stingy.hosts).kazoo.get_children("/") == ["zookeeper"]


# --- servers that cannot be reached ----------------------------------------------------------


def test_each_unreachable_host_is_named_with_its_cause(
    port: Port, zookeeper: LocalEnsemble
) -> None:
    with Forwarder(zookeeper.hosts) as hole:
        hole.cut()
        hosts = f"{port.address},{hole.hosts},nowhere.invalid:2181"
        with pytest.raises(zkelect.ConnectFailed) as refused:
            zkelect.connect(hosts, session_timeout=T, tick_time=0.2, timeout=3 * T)
    causes = refused.value.causes
    assert set(causes) == {port.address, hole.hosts, "nowhere.invalid:2181"}
    assert "refused" in causes[port.address]
    assert "silent" in causes[hole.hosts] or "timed out" in causes[hole.hosts]
    assert "resolve" in causes["nowhere.invalid:2181"]
    for told in (*causes, *causes.values(), f"within {3 * T:g} s"):
        assert told in str(refused.value)


def test_a_host_that_is_down_does_not_matter_while_another_is_up(
    port: Port, zookeeper: LocalEnsemble
) -> None:
    hosts = f"{port.address},nowhere.invalid,{zookeeper.hosts}"
    with zkelect.connect(hosts, session_timeout=T, tick_time=0.2, timeout=30.0) as session:
        assert session.connected


def test_what_is_no_zookeeper_is_told_as_such(port: Port) -> None:
    """Such as a web server."""

    def speak(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with serving(port, speak), pytest.raises(zkelect.ConnectFailed) as refused:
        zkelect.connect(port.address, session_timeout=T, tick_time=0.2, timeout=T)
    assert "b'HTTP" in refused.value.causes[port.address]
    assert "client port" in refused.value.causes[port.address]


# --- a server that is too old ------------------------------------------------------------------

UNIMPLEMENTED = -6


class serving:  # noqa: N801  # reads as a statement: with serving(...)
    """Answer every connection to a port with a function, each on a thread."""

    def __init__(self, port: Port, speak: Callable[[socket.socket], None]) -> None:
        self._listener, self._speak = port.listen(), speak

    def __enter__(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed: that ends it
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client has had enough
            self._speak(connection)


def speak_like_version_3_4(connection: socket.socket) -> None:
    """Grant a session, then know no Create2."""
    reader = wire.FrameReader()
    password = bytes(16)
    granted = struct.pack("!iiqi", 0, 2000, 0x1234, len(password)) + password + b"\0"
    frames = iter(reader.feed(connection.recv(4096)))
    next(frames)
    send(connection, granted)
    while data := connection.recv(4096):
        for frame in reader.feed(data):
            header = wire.decode_request_header(frame)
            unknown = wire.opcode_name(header.opcode) == "create2"
            send(connection, struct.pack("!iqi", header.xid, 1, UNIMPLEMENTED if unknown else 0))


def send(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(struct.pack("!i", len(frame)) + frame)


def test_a_server_without_create2_is_told_to_be_too_old(port: Port) -> None:
    with serving(port, speak_like_version_3_4), pytest.raises(zkelect.ServerTooOld) as refused:
        zkelect.connect(port.address, session_timeout=T, tick_time=0.2, timeout=30.0)
    assert refused.value.hosts == port.address
    assert "older than ZooKeeper 3.5" in str(refused.value)


# --- clients of the application ------------------------------------------------------------------


def test_a_read_only_client_is_not_adopted(zookeeper: LocalEnsemble) -> None:
    client = KazooClient(zookeeper.hosts, timeout=T, read_only=True)
    client.start()
    with pytest.raises(zkelect.InvalidArgument, match="read_only") as refused:
        zkelect.Session.adopt(client, session_timeout=T)
    assert refused.value.argument == "client"
    assert client.connected
    client.stop()
    client.close()


def test_a_client_that_was_not_started_is_not_adopted(zookeeper: LocalEnsemble) -> None:
    client = KazooClient(zookeeper.hosts, timeout=T)
    with pytest.raises(zkelect.InvalidArgument, match="started, connected"):
        zkelect.Session.adopt(client, session_timeout=T)
    client.close()


def test_an_adopted_client_has_a_lease_only_after_a_chain_of_probes(
    adopted: Callable[..., tuple[KazooClient, zkelect.Session]],
    campaign: Callable[..., Campaign],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    """Nobody saw its handshake: until four probes span a tick, nothing is proven."""
    with Forwarder(zookeeper.hosts) as link:
        client, session = adopted(link.hosts, tick_time=0.2)
        assert session.lease.deadline == -float("inf")
        before = link.replies["multi"]
        election = zkelect.Election(session, path, name="adopted")
        leadership = campaign(election).leadership()
        assert link.replies["multi"] - before >= 4
        assert 0 < leadership.remaining() < 0.98 * T
        assert leadership.check() == leadership.token
        assert leadership.session_id == client.client_id[0]
        session.close()
        assert leadership.reason == "closed"
        assert client.connected  # it goes on, and is the application's to stop
        assert client.exists(path)
