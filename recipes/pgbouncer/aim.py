"""What a pool is to do under a page: pure."""

from __future__ import annotations

import re
from typing import Final, Self

import attrs
import psycopg
from psycopg.conninfo import conninfo_to_dict

from zkelect import InvalidArgument
from zkelect.recipes.page import Page, Phase

__all__ = ["Address", "Aim", "aim_of"]

_HOST: Final = re.compile(r"[\w.:/-]+")
_PORT: Final = 5432


@attrs.frozen
class Address:
    """Where a server is, as pgbouncer has it: a host, or the folder of a socket, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, conninfo: str) -> Self:
        """Read a member's address, ``host=10.0.0.1 port=5432``.

        :raises InvalidArgument: it does not name one host and port.
        """
        try:
            found = conninfo_to_dict(conninfo)
            host, port = str(found.get("host", "")), int(found.get("port") or _PORT)
        except (psycopg.Error, ValueError) as error:
            raise InvalidArgument("address", conninfo, f"'host=… port=…' ({error})") from error
        if not _HOST.fullmatch(host):
            raise InvalidArgument("address", conninfo, "'host=… port=…' with one host")
        return cls(host, port)

    def __str__(self) -> str:
        """Return it as people read it."""
        return f"{self.host}:{self.port}"


@attrs.frozen
class Aim:
    """What is to be so.

    :ivar serial: of the page that asks for it.
    :ivar address: of the primary, or of the last one while there is none.
    :ivar held: clients wait.
    """

    serial: int
    address: Address
    held: bool


def aim_of(page: Page | None) -> Aim | None:
    """Return what a page asks for; None: there has been no primary yet.

    :raises InvalidArgument: the primary's address is none for pgbouncer.
    """
    primary = None if page is None else page.member(page.primary)
    if page is None or primary is None:
        return None
    held = page.phase is not Phase.STEADY
    return Aim(page.serial, Address.parse(primary.address), held)
