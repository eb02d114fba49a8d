"""A TCP forwarder in front of one server, that can cut, drop and refuse, and counts."""

from __future__ import annotations

from zkelect.errors import InvalidArgument
from zkelect.session import hosts
from zkelect.testing.journal import Journal
from zkelect.testing.relay import Relay
from zkelect.testing.tap import Tap

__all__ = ["Forwarder"]


class Forwarder(Relay):
    """Stands between clients and one ZooKeeper server, and misbehaves on request.

    ::

        with Forwarder(zookeeper.servers[0].address) as forwarder:
            client = KazooClient(forwarder.hosts)
            ...
            forwarder.cut()

    Every method returns when it has taken effect. Works for TLS too, but names no frames
    then. One daemon thread, on the loopback interface only.
    """

    def __init__(self, address: str) -> None:
        """Listen on a free port and forward to ``address``.

        :param address: ``host:port`` of one server. It need not run yet: while it does not,
            connections are accepted and reset.
        :raises InvalidArgument: not one server.
        """
        journal = Journal()
        super().__init__([_one_server(address)], journal, lambda cut: Tap(cut, journal))


def _one_server(address: str) -> tuple[str, int]:
    parsed = hosts.parse(address)
    if len(parsed.servers) != 1 or parsed.chroot:
        raise InvalidArgument("address", address, "one server, as host:port")
    return parsed.servers[0]
