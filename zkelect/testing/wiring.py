"""What ``ip`` and ``iptables-restore`` are told to build a network of servers. Pure text.

::

    this machine ── zk7 ──┐         ┌── eth0  server 0
                          │   hub   ├── eth0  server 1
                          └─────────┴── eth0  server 2

The hub, a namespace of its own, is a router: every packet between two servers, or between a
server and a client, passes its chain FORWARD, the one place where the network is broken. It
is no bridge: where Docker runs, packets that cross a bridge are given to Docker's rules.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = ["Block", "Drop", "Slowness", "between", "rules"]

# RFC 2544, RFC 6890: for tests of networks, in nobody's use, routed nowhere.
_RANGE: Final = ipaddress.IPv4Network("198.18.0.0/15")
_SIZE: Final = 16
_HUB: Final = 14

Drop = tuple[str, str]
"""From which address to which other one packets are dropped."""


@attrs.frozen
class Slowness:
    """What befalls all that one server sends.

    :ivar latency: seconds. :ivar loss: share of the packets, 0 … 1.
    """

    latency: float
    loss: float


@attrs.frozen
class Block:
    """Sixteen addresses, for one ensemble.

    :ivar number: 0 … ``Block.COUNT`` - 1. The link of this machine is named after it, and two
        links cannot have one name: so no two ensembles have one block.
    """

    COUNT = _RANGE.num_addresses // _SIZE

    number: int

    @property
    def network(self) -> str:
        """All addresses of it."""
        return f"{_RANGE[self.number * _SIZE]}/28"

    @property
    def link(self) -> str:
        """This machine's link to the hub."""
        return f"zk{self.number}"

    @property
    def hub(self) -> str:
        """The address that routes lead over."""
        return self._address(_HUB)

    @property
    def clients(self) -> str:
        """The address of this machine, which all clients have."""
        return self._address(1)

    def server(self, index: int) -> str:
        """Return the address of a server."""
        return self._address(2 + index)

    def claim(self, hub: str) -> Sequence[str]:
        """Return the arguments for ``ip`` that lay the link to the hub.

        :param hub: path of its namespace. They fail when the block is in use.
        """
        return f"link add {self.link} type veth peer name clients netns {hub}".split()

    def at_clients(self) -> str:
        """Return the ``ip`` batch for this machine."""
        return self._end(self.link, self.clients)

    def at_hub(self, servers: Sequence[str]) -> str:
        """Return the ``ip`` batch for the hub.

        :param servers: paths of their namespaces.
        """
        links = [f"link add server{n} type veth peer name eth0 netns {path}\n"
                 for n, path in enumerate(servers)]  # fmt: skip
        routes = {f"server{n}": self.server(n) for n in range(len(servers))}
        return (
            f"link set lo up\naddress add {self.hub}/32 dev lo\n"
            + "".join(links)
            + "".join(_toward(*route) for route in [("clients", self.clients), *routes.items()])
        )

    def at_server(self, index: int) -> str:
        """Return the ``ip`` batch for a server: a way to this network, and to nowhere else."""
        return "link set lo up\n" + self._end("eth0", self.server(index))

    def _address(self, number: int) -> str:
        return str(_RANGE[self.number * _SIZE + number])

    def _end(self, link: str, address: str) -> str:
        return (
            f"address add {address}/32 dev {link}\nlink set {link} up\n"
            f"route add {self.network} via {self.hub} dev {link} onlink\n"
        )


def _toward(link: str, address: str) -> str:
    return f"link set {link} up\nroute add {address}/32 dev {link}\n"


def between(ones: Collection[str], others: Collection[str], *, one_way: bool) -> set[Drop]:
    """Return what parts two groups: all that the first sends to the second, or that and back."""
    there = {(one, other) for one in ones for other in others}
    return there if one_way else there | {(other, one) for one, other in there}


def rules(drops: Iterable[Drop], slow: Mapping[str, Slowness], queues: Sequence[str]) -> str:
    """Return what ``iptables-restore --noflush`` makes of the hub: the old rules go, at once.

    The chain itself must stay: with it the kernel would drop all that it holds for queues.

    :param slow: by address of the sender.
    :param queues: addresses; the place of each is the queue that delays what it sends.
    """
    lines = [f"-A FORWARD -s {source} -d {to} -j DROP" for source, to in sorted(drops)]
    # The queue's verdict ends the walk through the chain, so all that drops comes before it.
    lines += [
        f"-A FORWARD -s {source} -m statistic --mode random --probability {each.loss:f} -j DROP"
        for source, each in slow.items()
        if each.loss
    ]
    lines += [
        f"-A FORWARD -s {source} -j NFQUEUE --queue-num {queues.index(source)}"
        for source, each in slow.items()
        if each.latency
    ]
    return "\n".join(("*filter", "-F FORWARD", *lines, "COMMIT", ""))
