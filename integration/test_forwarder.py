"""The forwarder in front of a real server: it passes, counts, cuts, drops, refuses."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from typing import TYPE_CHECKING

import attrs
import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from zkelect.errors import ConnectFailed, InvalidArgument, Misuse
from zkelect.testing import Forwarder, LocalEnsemble, expire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WITHIN = 30.0


@attrs.frozen
class Client:
    """A kazoo client with its states as events."""

    kazoo: KazooClient
    hosts: str
    left: threading.Event = attrs.field(factory=threading.Event)
    lost: threading.Event = attrs.field(factory=threading.Event)

    def credentials(self) -> tuple[int, bytes]:
        session_id, password = self.kazoo.client_id
        return session_id, password

    def note(self, state: str) -> None:
        if state != KazooState.CONNECTED:
            self.left.set()
        if state == KazooState.LOST:
            self.lost.set()


@contextlib.contextmanager
def client(hosts: str) -> Iterator[Client]:
    noted = Client(KazooClient(hosts, timeout=4.0), hosts)
    noted.kazoo.add_listener(noted.note)
    noted.kazoo.start()
    try:
        yield noted
    finally:
        noted.kazoo.stop()
        noted.kazoo.close()


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[LocalEnsemble]:
    with LocalEnsemble() as started:
        yield started


@pytest.fixture
def forwarder(zookeeper: LocalEnsemble) -> Iterator[Forwarder]:
    with Forwarder(zookeeper.hosts) as started:
        yield started


def dial(forwarder: Forwarder) -> socket.socket:
    host, _, port = forwarder.hosts.partition(":")
    return socket.create_connection((host, int(port)), WITHIN)


def ask(connection: socket.socket, word: bytes = b"ruok") -> bytes:
    connection.sendall(word)
    return connection.recv(100)


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WITHIN
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# --- passing and counting -----------------------------------------------------------------


def test_requests_and_replies_are_counted_by_name(forwarder: Forwarder) -> None:
    with client(forwarder.hosts) as one:
        one.kazoo.create("/counted", b"", include_data=True)
        for _ in range(3):
            one.kazoo.get("/counted")
        one.kazoo.transaction().commit()
        one.kazoo.delete("/counted")
        assert forwarder.wait_for(lambda: forwarder.replies["delete"] == 1, timeout=WITHIN)
    expected = {"connect": 1, "create2": 1, "getData": 3, "multi": 1, "delete": 1}
    for counted in (forwarder.requests, forwarder.replies):
        assert expected.items() <= counted.items()


def test_the_log_has_every_frame_in_order_on_one_clock(forwarder: Forwarder) -> None:
    with client(forwarder.hosts) as one:
        fired = threading.Event()
        one.kazoo.exists("/logged", watch=lambda _: fired.set())
        one.kazoo.create("/logged", b"")
        assert fired.wait(WITHIN)
        one.kazoo.delete("/logged")
        told = [(f.direction, f.name, f.xid) for f in forwarder.log if f.name != "ping"]
    assert told[:2] == [("requests", "connect", None), ("replies", "connect", None)]
    assert told.index(("replies", "event", -1)) < told.index(("replies", "create", 2))
    assert told.index(("requests", "create", 2)) < told.index(("replies", "event", -1))
    times = [frame.at for frame in forwarder.log]
    assert times == sorted(times)
    assert all(frame.passed for frame in forwarder.log)


def test_a_large_value_passes_whole(forwarder: Forwarder) -> None:
    value = bytes(range(256)) * 3500
    with client(forwarder.hosts) as one:
        one.kazoo.create("/large", value)
        for _ in range(5):
            assert one.kazoo.get("/large")[0] == value
        one.kazoo.delete("/large")


def test_a_slow_reader_gets_every_byte_and_slows_the_writer() -> None:
    block = bytes(range(256)) * 256
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with Forwarder(address) as forwarder, dial(forwarder) as reader:
            writer, _ = server.accept()
            written = fill(writer, block)
            writer.close()
            received = b"".join(iter(lambda: reader.recv(1 << 16), b""))
    assert received == (block * (written // len(block) + 1))[:written]


def fill(writer: socket.socket, block: bytes, most: int = 1 << 28) -> int:
    """Write until nobody takes more; return how many bytes were taken."""
    writer.setblocking(False)
    written = 0
    while select.select([], [writer], [], 1.0)[1]:
        written += writer.send(block[written % len(block) :])
        assert written < most, "the forwarder reads without end"
    return written


def test_four_letter_words_pass_and_end(forwarder: Forwarder) -> None:
    with dial(forwarder) as connection:
        assert ask(connection) == b"imok"
        assert connection.recv(1) == b""
    assert forwarder.requests == {"ruok": 1}


# --- cutting ------------------------------------------------------------------------------


def test_a_black_hole_is_silent_and_stays_open(forwarder: Forwarder) -> None:
    with dial(forwarder) as old:
        forwarder.cut()
        with dial(forwarder) as new:
            for connection in (old, new):
                connection.sendall(b"ruok")
                connection.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    connection.recv(100)
                connection.settimeout(WITHIN)
            forwarder.heal()
            for connection in (old, new):
                with pytest.raises(ConnectionResetError):
                    connection.recv(100)
    with dial(forwarder) as connection:
        assert ask(connection) == b"imok"
    assert [frame.passed for frame in forwarder.log] == [False, False, True]
    assert forwarder.requests == {"ruok": 1}


def test_a_cut_that_swallowed_nothing_is_healed_without_loss(forwarder: Forwarder) -> None:
    with dial(forwarder) as connection:
        forwarder.cut()
        forwarder.heal()
        assert ask(connection) == b"imok"


def test_a_server_does_not_hear_that_a_cut_off_client_leaves(
    zookeeper: LocalEnsemble, forwarder: Forwarder
) -> None:
    def connections() -> int:
        host, _, port = zookeeper.hosts.partition(":")
        with socket.create_connection((host, int(port)), WITHIN) as asking:
            asking.sendall(b"cons")
            return asking.makefile().read().count("127.0.0.1:")

    quiet = connections()
    with dial(forwarder):
        assert until(lambda: connections() == quiet + 1)
        forwarder.cut()
    for _ in range(20):  # each one goes through the forwarder's loop once more
        forwarder.cut()
        assert connections() == quiet + 1
    forwarder.heal()
    assert until(lambda: connections() == quiet)


def test_a_client_does_not_hear_that_its_server_dies(forwarder: Forwarder) -> None:
    with LocalEnsemble() as other, Forwarder(other.hosts) as before, dial(before) as connection:
        before.cut()
        other.servers[0].kill()
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        before.heal()
        connection.settimeout(WITHIN)
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_a_cut_of_replies_lets_requests_through(
    zookeeper: LocalEnsemble, forwarder: Forwarder
) -> None:
    with client(zookeeper.hosts) as onlooker, client(forwarder.hosts) as one:
        made = threading.Event()
        onlooker.kazoo.exists("/unheard", watch=lambda _: made.set())
        forwarder.cut("replies")
        pending = one.kazoo.create_async("/unheard", b"")
        assert made.wait(WITHIN)
        assert not pending.ready()
        assert forwarder.wait_for(
            lambda: any(f.name == "create" and not f.passed for f in forwarder.log), timeout=WITHIN
        )
        assert (forwarder.requests["create"], forwarder.replies["create"]) == (1, 0)
        forwarder.heal()
        assert one.left.wait(WITHIN)
        onlooker.kazoo.delete("/unheard")


def test_a_cut_of_requests_keeps_them_from_the_server(
    zookeeper: LocalEnsemble, forwarder: Forwarder
) -> None:
    with client(zookeeper.hosts) as onlooker, client(forwarder.hosts) as one:
        forwarder.cut("requests")
        one.kazoo.create_async("/unsaid", b"")
        assert forwarder.wait_for(
            lambda: any(f.name == "create" and not f.passed for f in forwarder.log), timeout=WITHIN
        )
        onlooker.kazoo.sync("/")
        assert onlooker.kazoo.exists("/unsaid") is None
        forwarder.heal()


# --- dropping and refusing ----------------------------------------------------------------


def test_a_dropped_connection_is_resumed_with_the_same_session(forwarder: Forwarder) -> None:
    with client(forwarder.hosts) as one:
        session = one.credentials()
        forwarder.drop()
        assert one.left.wait(WITHIN)
        assert until(lambda: one.kazoo.connected)
        assert one.credentials() == session
    assert forwarder.requests["connect"] == 2


def test_refused_connections_are_accepted_again_on_the_same_port(forwarder: Forwarder) -> None:
    with dial(forwarder) as before:
        forwarder.refuse()
        forwarder.refuse()
        with pytest.raises(ConnectionRefusedError):
            dial(forwarder)
        assert ask(before) == b"imok"
    forwarder.accept()
    forwarder.accept()
    with dial(forwarder) as after:
        assert ask(after) == b"imok"


def test_without_a_server_connections_are_reset() -> None:
    with LocalEnsemble() as other, Forwarder(other.hosts) as before:
        other.servers[0].kill()
        # The reset may come before connect() has returned, or after.
        with pytest.raises(ConnectionResetError), dial(before) as connection:
            connection.recv(1)


def test_closing_ends_everything(zookeeper: LocalEnsemble) -> None:
    forwarder = Forwarder(zookeeper.hosts)
    with dial(forwarder) as connection:
        forwarder.close()
        forwarder.close()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        dial(forwarder)
    with pytest.raises(Misuse, match="closed"):
        forwarder.cut()
    assert not [thread for thread in threading.enumerate() if forwarder.hosts in thread.name]


@pytest.mark.parametrize("address", ["h1:1,h2:2", "h1:1/chroot", "", "h1:port"])
def test_one_server_only(address: str) -> None:
    with pytest.raises(InvalidArgument):
        Forwarder(address)


# --- expiry -------------------------------------------------------------------------------


def test_expire_ends_the_session_and_its_znodes(zookeeper: LocalEnsemble) -> None:
    with client(zookeeper.hosts) as onlooker, client(zookeeper.hosts) as victim:
        victim.kazoo.create("/mortal", b"", ephemeral=True)
        expire(victim)
        onlooker.kazoo.sync("/")
        assert onlooker.kazoo.exists("/mortal") is None
        assert victim.lost.wait(WITHIN)


def test_expire_goes_around_a_cut_forwarder(zookeeper: LocalEnsemble, forwarder: Forwarder) -> None:
    with client(zookeeper.hosts) as onlooker, client(forwarder.hosts) as victim:
        victim.kazoo.create("/mortal", b"", ephemeral=True)
        forwarder.cut()
        with pytest.raises(ConnectFailed, match=r"within 0\.2 s .*timed out"):
            expire(victim, timeout=0.2)
        expire(victim, hosts=zookeeper.hosts)
        onlooker.kazoo.sync("/")
        assert onlooker.kazoo.exists("/mortal") is None
        forwarder.heal()


def test_an_expired_session_cannot_be_expired_again(zookeeper: LocalEnsemble) -> None:
    with client(zookeeper.hosts) as victim:
        before = Expired(zookeeper.hosts, victim.credentials())
        expire(before)
        with pytest.raises(ConnectFailed, match="has ended already"):
            expire(before)


@attrs.frozen
class Expired:
    """A session that keeps its credentials after its end."""

    hosts: str
    held: tuple[int, bytes]

    def credentials(self) -> tuple[int, bytes]:
        return self.held
