"""Where one Redis server is, and how its primary is run."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import attrs

from zkelect import InvalidArgument

__all__ = ["NOWHERE", "URL", "Place", "split_address"]

NOWHERE: Final = ("127.0.0.1", 0)
"""Whom a server follows that follows nobody: nothing can ever listen on port 0."""
URL: Final = "ZKELECT_REDIS_URL"
"""What tells the dead-man's process the server; an argument would show its password to all."""
_SCHEMES: Final = ("redis", "rediss")


def _is_url(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        shown = f"{parts.scheme}://…"  # it may have a password
        raise InvalidArgument(
            attribute.name, shown, "redis://user:password@host:port/0 or rediss://"
        )


def _is_count(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgument(attribute.name, value, "a whole number from 0")


@attrs.frozen(kw_only=True)
class Place:
    """One server as its agent sees it, on the same host.

    :ivar url: our own server, with user and password if it asks for them; the other members are
        reached with the same ones. The user may run every command.
    :ivar record: a file of the recipe's own, on a disk that outlives a restart of the host.
    :ivar start: the command that starts the server and returns, ``systemctl start redis``; empty:
        it is started by others, such as systemd with ``Restart=always``.
    :ivar min_replicas: an open primary takes writes only while so many followers have reported
        within the last ``max_lag`` seconds; 0: also without any.
    :ivar max_lag: whole seconds, from 1; followers report once a second.
    """

    url: str = attrs.field(validator=_is_url, repr=False)
    record: Path = attrs.field(converter=Path)
    start: tuple[str, ...] = ()
    min_replicas: int = attrs.field(default=0, validator=_is_count)
    max_lag: int = attrs.field(default=10, validator=_is_count)

    @max_lag.validator
    def _is_some(self, attribute: attrs.Attribute[int], value: int) -> None:
        if value == 0:  # Redis takes it for: never mind the followers
            raise InvalidArgument("max_lag", value, "whole seconds from 1")

    def remote(self, address: str) -> str:
        """Return the URL of another member.

        :param address: ``host:port``. :raises InvalidArgument: it is something else.
        """
        split_address(address)
        parts = urlsplit(self.url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{address}").geturl()


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``host:port``.

    :raises InvalidArgument: it is something else.
    """
    host, _, port = address.rpartition(":")
    bare = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not host or bare or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InvalidArgument("address", address, "host:port, of IPv6 [::1]:6379")
    return host.strip("[]"), int(port)
