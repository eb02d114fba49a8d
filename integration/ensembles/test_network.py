"""The network between servers, without servers: what is dropped, delayed, kept, left behind."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN

from zkelect.testing.network import Network
from zkelect.testing.wiring import Slowness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.testing.netns import Namespace

PORT = 2181
LINKS = Path("/sys/class/net")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def network(opened: ExitStack) -> Network:
    return Network(2, opened)


def links() -> set[str]:
    return {link.name for link in LINKS.iterdir() if link.name.startswith("zk")}


class Mailbox:
    """An address in the network that datagrams are sent to and from."""

    def __init__(self, address: str, opened: ExitStack, namespace: Namespace | None = None) -> None:
        self.address = (address, PORT)
        self._socket: socket.socket = opened.enter_context(
            self._bind() if namespace is None else namespace.call(self._bind)
        )

    def send(self, to: Mailbox, *words: str) -> None:
        for word in words:
            self._socket.sendto(word.encode(), to.address)

    def receive(self) -> str:
        return self._socket.recv(100).decode()

    def _bind(self) -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.settimeout(WITHIN)
        bound.bind(self.address)
        return bound


@pytest.fixture
def mailboxes(network: Network, opened: ExitStack) -> tuple[Mailbox, Mailbox, Mailbox]:
    """Two servers and a client."""
    first, second = (
        Mailbox(address, opened, namespace)
        for address, namespace in zip(network.addresses, network.namespaces, strict=True)
    )
    return first, second, Mailbox(network.clients, opened)


# --- what is dropped ---------------------------------------------------------------------------


def test_servers_reach_each_other_and_clients(mailboxes: tuple[Mailbox, ...]) -> None:
    for sender in mailboxes:
        for receiver in set(mailboxes) - {sender}:
            sender.send(receiver, "hello")
            assert receiver.receive() == "hello"


def test_what_is_dropped_one_way_passes_the_other_way_and_to_others(
    network: Network, mailboxes: tuple[Mailbox, Mailbox, Mailbox]
) -> None:
    a, b, client = mailboxes
    network.drop({(network.addresses[0], network.addresses[1])})
    a.send(b, "lost")
    b.send(a, "back")
    assert a.receive() == "back"
    a.send(client, "out")
    assert client.receive() == "out"
    network.heal(reset=True)
    a.send(b, "healed")
    assert b.receive() == "healed"


def test_what_is_lost_for_certain_never_comes(
    network: Network, mailboxes: tuple[Mailbox, Mailbox, Mailbox]
) -> None:
    a, b, client = mailboxes
    network.slow(network.addresses[0], Slowness(latency=0.0, loss=1.0))
    a.send(b, "lost")
    a.send(client, "lost")
    b.send(a, "back")
    assert a.receive() == "back"
    network.heal(reset=True)
    for receiver in (b, client):
        a.send(receiver, "healed")
        assert receiver.receive() == "healed"


def test_of_what_is_lost_by_chance_some_comes(
    network: Network, mailboxes: tuple[Mailbox, Mailbox, Mailbox]
) -> None:
    a, b, _ = mailboxes
    network.slow(network.addresses[0], Slowness(latency=0.0, loss=0.5))
    a.send(b, *map(str, range(200)))
    network.heal(reset=True)
    a.send(b, "end")
    came = list(iter(b.receive, "end"))
    assert 0 < len(came) < 200


# --- what is delayed ---------------------------------------------------------------------------


def test_what_is_slow_comes_late_and_in_order(
    network: Network, mailboxes: tuple[Mailbox, Mailbox, Mailbox]
) -> None:
    a, b, _ = mailboxes
    network.slow(network.addresses[0], Slowness(latency=0.2, loss=0.0))
    began = time.monotonic()
    a.send(b, "1", "2", "3")
    assert b.receive() == "1"
    assert time.monotonic() - began >= 0.2
    assert [b.receive(), b.receive()] == ["2", "3"]


def test_a_second_latency_replaces_the_first(
    network: Network, mailboxes: tuple[Mailbox, Mailbox, Mailbox]
) -> None:
    a, b, _ = mailboxes
    for latency in (60.0, 0.1):
        network.slow(network.addresses[0], Slowness(latency=latency, loss=0.0))
    began = time.monotonic()
    a.send(b, "soon")
    assert b.receive() == "soon"
    assert time.monotonic() - began >= 0.1


def test_another_fault_loses_nothing_of_what_is_delayed(
    network: Network, mailboxes: tuple[Mailbox, Mailbox, Mailbox]
) -> None:
    a, b, _ = mailboxes
    network.slow(network.addresses[0], Slowness(latency=0.2, loss=0.0))
    a.send(b, "late")
    network.drop({(network.addresses[1], network.addresses[0])})
    assert b.receive() == "late"


def test_healing_lets_go_on_what_is_delayed(
    network: Network, mailboxes: tuple[Mailbox, Mailbox, Mailbox]
) -> None:
    a, b, _ = mailboxes
    network.slow(network.addresses[0], Slowness(latency=60.0, loss=0.0))
    a.send(b, "at last")
    network.heal(reset=True)
    assert b.receive() == "at last"


# --- connections -------------------------------------------------------------------------------


def connect(network: Network, opened: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Connect the first server to the second one."""
    first, second = network.namespaces
    address = (network.addresses[1], PORT)
    listener = opened.enter_context(second.call(partial(socket.create_server, address)))
    ours = opened.enter_context(first.call(partial(socket.create_connection, address, WITHIN)))
    theirs = opened.enter_context(listener.accept()[0])
    theirs.settimeout(WITHIN)
    return ours, theirs


def test_a_connection_that_lost_packets_is_ended_at_both_ends(
    network: Network, opened: ExitStack
) -> None:
    ends = connect(network, opened)
    network.drop({(network.addresses[0], network.addresses[1])})
    network.heal(reset=True)
    for end in ends:
        with pytest.raises(ConnectionError):
            end.recv(1)


def test_a_connection_may_also_go_on(network: Network, opened: ExitStack) -> None:
    ours, theirs = connect(network, opened)
    network.drop({(network.addresses[0], network.addresses[1])})
    ours.send(b"late")
    network.heal(reset=False)
    assert theirs.recv(4) == b"late"


# --- what is outside ---------------------------------------------------------------------------


@pytest.mark.parametrize("outside", ["192.0.2.1", "198.51.100.1"])
def test_a_server_reaches_nobody_outside(network: Network, outside: str) -> None:
    with pytest.raises(OSError, match="Network is unreachable"):
        network.namespaces[0].call(partial(socket.create_connection, (outside, 80), WITHIN))


def test_a_server_does_not_reach_what_listens_on_this_machine(network: Network) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(ConnectionRefusedError):
        network.namespaces[0].call(
            partial(socket.create_connection, listener.getsockname(), WITHIN)
        )


def test_networks_side_by_side_share_nothing(opened: ExitStack) -> None:
    one, other = Network(2, opened), Network(2, opened)
    assert not {*one.addresses, one.clients} & {*other.addresses, other.clients}
    Mailbox(one.addresses[0], opened, one.namespaces[0])
    with pytest.raises(OSError, match="Network is unreachable"):
        other.namespaces[0].call(
            partial(socket.create_connection, (one.addresses[0], PORT), WITHIN)
        )


def test_nothing_is_left_when_it_is_closed() -> None:
    before = links()
    with ExitStack() as opened:
        network = Network(3, opened)
        network.slow(network.addresses[0], Slowness(latency=60.0, loss=0.0))
        assert len(links() - before) == 1
    assert links() <= before


def test_nothing_is_left_when_it_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    before = links()

    def fail(_: Network, __: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Network, "_wire", fail)
    with ExitStack() as opened, suppress(KeyboardInterrupt):
        Network(3, opened)
    assert links() <= before
