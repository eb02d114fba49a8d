"""Connection strings: what people write, understood or refused with the right form."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import is_normalized
from urllib.parse import urlsplit

import attrs

from zkelect.errors import InvalidArgument

__all__ = ["DEFAULT_PORT", "Hosts", "parse", "server_name"]

DEFAULT_PORT: Final = 2181
_FORM: Final = "the form is 'zk1:2181,zk2:2181,zk3:2181/chroot', IPv6 as '[::1]:2181'"
_CREDENTIALS: Final = "no user and no password here; auth= takes them, or the configuration file"
_SCHEMES: Final = ("zk://", "zookeeper://")
_LETTERS: Final = re.compile(r"[\w.:%\[\]-]+")  # of a server; urlsplit passes over some others


@attrs.frozen(kw_only=True)
class Hosts:
    """The servers of one ensemble and the chroot below which we work.

    :param servers: host and port of each. :param chroot: '' or an absolute path.
    """

    servers: tuple[tuple[str, int], ...]
    chroot: str = ""

    def __str__(self) -> str:
        """Return the canonical form, which kazoo understands as well."""
        return ",".join(self.names) + self.chroot

    @property
    def names(self) -> tuple[str, ...]:
        """Each server as text, in the order given."""
        return tuple(server_name(host, port) for host, port in self.servers)


def parse(hosts: str) -> Hosts:
    """Read a connection string.

    :param hosts: servers separated by commas, spaces allowed around them, a ``zk://``
        prefix too; port 2181 when none is given; one chroot, behind the last server.
    :raises InvalidArgument: says what is wrong and gives the right form.
    """
    if not isinstance(hosts, str):
        raise InvalidArgument("hosts", hosts, f"one text; {_FORM}")
    try:
        return _parse(hosts)
    except InvalidArgument:
        if "@" not in hosts:
            raise
    shown = "***" + hosts[hosts.rindex("@") :]
    raise InvalidArgument("hosts", shown, f"{_CREDENTIALS}; {_FORM}")  # nor is it in a cause


def _parse(hosts: str) -> Hosts:
    text = hosts.strip()
    for scheme in _SCHEMES:
        text = text.removeprefix(scheme)
    servers, slash, chroot = text.partition("/")
    if slash and "," in chroot:
        raise InvalidArgument(
            "hosts", hosts, f"one chroot for all, behind the last server; {_FORM}"
        )
    return Hosts(
        servers=tuple(_server(server.strip(), hosts) for server in servers.split(",")),
        chroot=_chroot(chroot, hosts),
    )


def _server(server: str, hosts: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{server}")
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")  # what cannot be a name must not reach the resolver
    except ValueError as error:
        raise InvalidArgument("hosts", hosts, f"{error} in {server!r}; {_FORM}") from error
    bare = "]" in server and not server.endswith("]") and "]:" not in server
    if not host or bare or port == 0 or server.endswith(":") or _LETTERS.fullmatch(server) is None:
        raise InvalidArgument("hosts", hosts, f"{server!r} is no host with a port; {_FORM}")
    return host, DEFAULT_PORT if port is None else port


def _chroot(chroot: str, hosts: str) -> str:
    parts = chroot.rstrip("/").split("/") if chroot.rstrip("/") else []
    if not all(_is_node_name(part) for part in parts):
        raise InvalidArgument("hosts", hosts, f"the chroot is no znode path; {_FORM}")
    return "".join(f"/{part}" for part in parts)


def _is_node_name(part: str) -> bool:
    """As in paths of elections: nothing that looks like something else."""
    plain = part == part.strip() and part.isprintable() and is_normalized("NFC", part)
    return plain and part not in ("", ".", "..")


def server_name(host: str, port: int) -> str:
    """Return a server as text, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
