"""Where to listen: the forms people write, and sockets that listen there at once."""

from __future__ import annotations

import errno
import re
import socket
from typing import Any, Final

import attrs

from zkelect.errors import InvalidArgument

__all__ = ["Listener", "listen"]

_FORM: Final = (
    "':8008' (all addresses of this host), '127.0.0.1:8008', '[::1]:8008' or 'name:8008', with a "
    "port of 0 to 65535"
)
_ADDRESS: Final = re.compile(r"(?:\[(?P<bare>[^]]+)\]|(?P<name>[^][:/\s]*)):(?P<port>[0-9]{1,5})")
_MOST: Final = 65535
_NOT_HERE: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


@attrs.frozen(kw_only=True)
class Listener:
    """Sockets that listen: connections wait in the kernel until somebody serves them.

    :ivar sockets: one for each address that the name has.
    :ivar host: of the first of them. :ivar port: of all of them, also when 0 was asked for.
    """

    sockets: tuple[socket.socket, ...]
    host: str
    port: int

    @property
    def url(self) -> str:
        """Where the first of them is reached from this host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def close(self) -> None:
        """Listen no more; harmless when closed."""
        for each in self.sockets:
            each.close()


def listen(address: str) -> Listener:
    """Listen at an address, so that whether it can be had is known before anything else is done.

    :param address: ``:8008`` for all addresses of this host, IPv6 and IPv4, or one of its own:
        ``127.0.0.1:8008``, ``[::1]:8008``, ``localhost:8008``. Port 0 takes a free one.
    :raises InvalidArgument: it has another form, is not ours, or is taken.
    """
    host, port = _parse(address)
    try:
        sockets = _sockets(host, port)
    except (OSError, UnicodeError) as error:  # UnicodeError: no such name can be
        cause = getattr(error, "strerror", None) or error
        raise InvalidArgument("address", address, f"cannot listen there: {cause}") from error
    host, port = sockets[0].getsockname()[:2]
    return Listener(sockets=sockets, host=host, port=port)


def _parse(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None or int(found["port"]) > _MOST:
        raise InvalidArgument("address", address, _FORM)
    return found["bare"] or found["name"], int(found["port"])


def _sockets(host: str, port: int) -> tuple[socket.socket, ...]:
    if not host:
        return (_listen_everywhere(port),)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    places = dict.fromkeys((family, place) for family, _, _, _, place in found)
    made: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, place in places:
            taken = made[0].getsockname()[1] if made else port
            missing = _add(made, family, (place[0], taken, *place[2:])) or missing
    except OSError:
        for each in made:
            each.close()
        raise
    if missing is not None and not made:
        raise missing
    return tuple(made)


def _add(made: list[socket.socket], family: int, place: tuple[Any, ...]) -> OSError | None:
    """Listen at one more; ``localhost`` often has an IPv6 address that the host has not."""
    try:
        made.append(socket.create_server(place, family=family))
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        return error
    return None


def _listen_everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in _NOT_HERE:  # a host may know IPv6 and have it switched off
                raise
    return socket.create_server(("", port))
