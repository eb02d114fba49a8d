"""Free loopback ports that stay ours, also while nobody listens on them."""

from __future__ import annotations

import socket
from typing import Final

__all__ = ["LOOPBACK", "Port"]

LOOPBACK: Final = "127.0.0.1"


class Port:
    """A free TCP port on the loopback interface, kept from everybody else.

    A bound socket that never listens holds the port. Linux gives a held port to no one
    who asks for any free port, refuses connections to it, and lets a server that sets
    SO_REUSEADDR, as Java's servers do, bind and listen there beside the holder. So there
    is no moment, neither before the first start nor between a kill and the next start, in
    which another program can be given the port.

    :ivar number: 1 … 65535.
    """

    def __init__(self) -> None:
        self._holder = _reusable_socket()
        self._holder.bind((LOOPBACK, 0))
        self.number: int = self._holder.getsockname()[1]

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{LOOPBACK}:{self.number}"

    def listen(self) -> socket.socket:
        """Open a socket that listens here; closing it keeps the port held."""
        listener = _reusable_socket()
        listener.bind((LOOPBACK, self.number))
        listener.listen(128)
        return listener

    def release(self) -> None:
        """Give the port back; no-op the second time."""
        self._holder.close()


def _reusable_socket() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return opened
