"""Real ZooKeeper servers on this machine, with a network between them that can be broken."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from zkelect.errors import InvalidArgument, Misuse
from zkelect.testing.configuration import HEALING_OPTIONS, Ports
from zkelect.testing.local import LocalEnsemble, Site
from zkelect.testing.netns import NetworkUnavailable, find_missing
from zkelect.testing.network import Network
from zkelect.testing.wiring import Slowness, between

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Collection, Sequence

__all__ = ["LoopbackEnsemble", "NamespaceEnsemble"]

_PORTS: Final = (2181, 2888, 3888)
_NOT_STARTED: Final = "this ensemble is not started: start() it, or use it in a with-block"
_LONGEST_LATENCY: Final = 60.0


class NamespaceEnsemble(LocalEnsemble):
    """Real ZooKeeper servers, each in a network namespace of its own (Linux, root).

    ::

        with NamespaceEnsemble() as zookeeper:
            session = zkelect.connect(zookeeper.hosts)
            zookeeper.isolate(zookeeper.leader())
            ...
            zookeeper.heal()

    A :class:`LocalEnsemble` in everything else, and a
    :class:`~zkelect.testing.ensembles.FaultyEnsemble`. Its servers can be reached from this machine
    and from nowhere else, and reach nothing else. Faults are packets dropped or delayed by a
    router between them: nobody is told, no connection is closed. They add up, and outlast a
    restart of a server.

    Nothing is left behind when this process dies, however hard: links, addresses and
    firewall rules live in namespaces without a name, and the kernel removes them with the
    last process in them. Any number of ensembles run side by side, each with sixteen
    addresses of 198.18.0.0/15, the range for tests of networks (RFC 2544).
    """

    def __init__(
        self, servers: int = 3, *, java_options: Sequence[str] = (), **options: Any
    ) -> None:
        """Describe an ensemble; see :class:`LocalEnsemble` for the parameters.

        :param servers: 1 … 7.
        :raises InvalidArgument: a number is outside its range.
        """
        super().__init__(servers, java_options=(*HEALING_OPTIONS, *java_options), **options)
        self._network: Network | None = None

    def start(self) -> None:
        """Build the network, start all servers in it and wait until they serve.

        :raises NetworkUnavailable: not Linux, not root, or a program is missing; it says
            what to type.
        :raises ServerNotFound: this machine has no ZooKeeper, or no Java.
        :raises ServerFailed: a server did not start; the end of its log is in the message.
        :raises Misuse: it is started already.
        """
        if missing := find_missing():
            raise NetworkUnavailable(missing)
        super().start()

    def stop(self) -> None:
        """Kill the servers, remove the network, and delete their directory unless kept."""
        self._network = None
        super().stop()

    # --- breaking -------------------------------------------------------------------------

    def isolate(self, index: int) -> None:
        """Cut a server off from its peers and from all clients, both ways.

        :raises InvalidArgument: there is no such server. :raises Misuse: not started.
        """
        network, alone = self._started(), self._address("index", index)
        others = {*network.addresses, network.clients} - {alone}
        network.drop(between([alone], others, one_way=False))

    def partition(
        self, one: Collection[int], other: Collection[int], *, one_way: bool = False
    ) -> None:
        """Drop what servers of one group send to servers of the other; clients reach both.

        :param one: indices of servers. :param other: indices of servers, none of them in ``one``.
        :param one_way: drop only what ``one`` sends to ``other``; so no answer gets there
            either, but what ``other`` sends does arrive.
        :raises InvalidArgument: no such server, or one in both. :raises Misuse: not started.
        """
        network = self._started()
        if both := set(one) & set(other):
            raise InvalidArgument("other", other, f"without {sorted(both)}, which ``one`` has")
        sources = [self._address("one", index) for index in one]
        targets = [self._address("other", index) for index in other]
        network.drop(between(sources, targets, one_way=one_way))

    def slow(self, index: int, *, latency: float = 0.05, loss: float = 0.0) -> None:
        """Delay, and lose at random, all that a server sends, to peers and to clients.

        A second call for the same server replaces the first.

        :param latency: seconds added to each packet, 0 … 60.
        :param loss: share of the packets that are lost, 0 … 1.
        :raises InvalidArgument: no such server, or a number outside its range.
        :raises NetworkUnavailable: the kernel queues no packets for programs (NFQUEUE).
        :raises Misuse: not started.
        """
        network, address = self._started(), self._address("index", index)
        if not 0 <= latency <= _LONGEST_LATENCY:
            raise InvalidArgument("latency", latency, f"seconds, 0 … {_LONGEST_LATENCY:g}")
        if math.isnan(loss) or not 0 <= loss <= 1:
            raise InvalidArgument("loss", loss, "a share of the packets, 0 … 1")
        network.slow(address, Slowness(latency, loss))

    def heal(self, *, reset: bool = True) -> None:
        """Undo every fault of the network; paused and killed servers stay so.

        :param reset: end the connections between those that were cut off from each other.
            TCP sends lost packets again, but waits twice as long each time: after a cut of
            ten seconds another ten may pass. False: let them wait, and arrive late.
        :raises Misuse: not started.
        """
        self._started().heal(reset=reset)

    # --- within ---------------------------------------------------------------------------

    def _sites(self, count: int, opened: contextlib.ExitStack) -> Sequence[Site]:
        self._network = network = Network(count, opened)
        return [
            Site(Ports(*_PORTS, host), namespace.spawner)
            for host, namespace in zip(network.addresses, network.namespaces, strict=True)
        ]

    def _started(self) -> Network:
        if self._network is None:
            raise Misuse(_NOT_STARTED)
        return self._network

    def _address(self, argument: str, index: int) -> str:
        addresses = self._started().addresses
        if not 0 <= index < len(addresses):
            raise InvalidArgument(
                argument, index, f"an index of a server, 0 … {len(addresses) - 1}"
            )
        return addresses[index]


class LoopbackEnsemble(LocalEnsemble):
    """Three servers for who cannot have namespaces: no fault of the network can be had.

    Servers can be killed, paused and restarted; what breaks the network raises, and says
    what is missing. So a test that needs no fault runs everywhere.
    """

    def __init__(self, servers: int = 3, **options: Any) -> None:
        """Describe an ensemble; see :class:`LocalEnsemble` for the parameters."""
        super().__init__(servers, **options)

    def isolate(self, index: int) -> None:
        """Raise NetworkUnavailable."""
        raise NetworkUnavailable(find_missing())

    def partition(
        self, one: Collection[int], other: Collection[int], *, one_way: bool = False
    ) -> None:
        """Raise NetworkUnavailable."""
        raise NetworkUnavailable(find_missing())

    def slow(self, index: int, *, latency: float = 0.05, loss: float = 0.0) -> None:
        """Raise NetworkUnavailable."""
        raise NetworkUnavailable(find_missing())

    def heal(self) -> None:
        """Do nothing: nothing was broken."""
