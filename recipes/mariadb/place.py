"""Where one MariaDB server is, and as whom it is asked."""

from __future__ import annotations

from pathlib import Path

import attrs

from zkelect import InvalidArgument
from zkelect.recipes.paths import absolute

__all__ = ["Place", "split_address"]


def _is_given(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(attribute.name, value, "a name")


def _is_plain(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not value.replace("_", "").isalnum() or not value.isascii():
        raise InvalidArgument(attribute.name, value, "letters, digits and underscores")


@attrs.frozen(kw_only=True)
class Place:
    """One server as its agent sees it, on the same host.

    :ivar socket: the Unix socket of our own server.
    :ivar data_directory: of this server alone; its process is found by it.
    :ivar user: the agent's account, on all members with the same password: our own server is asked
        through the socket, the others over TCP. It has ALL PRIVILEGES, and is the only one that
        has READ_ONLY ADMIN.
    :ivar replication_user: the account with REPLICATION SLAVE as which others are followed.
    :ivar database: keeps the fence's table and ``zkelect_promotions``; it exists.
    :ivar start: the command that starts the server and returns, ``systemctl start mariadb``; empty:
        it is started by others, such as systemd with ``Restart=always``.
    """

    socket: Path = attrs.field(converter=Path)
    data_directory: Path = attrs.field(converter=absolute)
    user: str = attrs.field(validator=_is_given)
    password: str = attrs.field(default="", repr=False)
    replication_user: str = attrs.field(validator=_is_given)
    replication_password: str = attrs.field(default="", repr=False)
    database: str = attrs.field(default="zkelect", validator=_is_plain)
    start: tuple[str, ...] = ()


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``host:port``.

    :raises InvalidArgument: it is something else.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InvalidArgument("address", address, "host:port")
    return host.strip("[]"), int(port)
