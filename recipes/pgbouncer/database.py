"""A database as pgbouncer offers it to clients: one line of its configuration, without the host."""

from __future__ import annotations

import re
from typing import Final, Self

import attrs

from zkelect import InvalidArgument
from zkelect.recipes.pgbouncer.aim import Address

__all__ = ["Database"]

_FORM: Final = "'app', or 'app=dbname=application pool_size=5'"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
"""What pgbouncer reads as a key of its configuration, and its console as an argument."""
_OURS: Final = frozenset({"host", "hostaddr", "port"})


def _is_name(_instance: object, _: attrs.Attribute[str], value: str) -> None:
    if not _NAME.fullmatch(value):
        expected = "the name of one database, of letters, digits, '_', '.' and '-', up to 60"
        raise InvalidArgument("database", value, expected)


def _are_options(_instance: object, _: attrs.Attribute[str], value: str) -> None:
    keys = set(re.findall(r"(\w+)\s*=", value))
    if "password" in keys:
        expected = "no password: everybody may read the file; pgbouncer has auth_file"
        raise InvalidArgument("database", "password=…", expected)
    if not value.isprintable() or keys & _OURS:
        raise InvalidArgument("database", value, "without host and port, which are the primary's")


@attrs.frozen
class Database:
    """A database that leads to the primary.

    :ivar name: as clients ask for it. :ivar options: the rest of pgbouncer's line, such as
        ``dbname=application pool_size=5``.
    """

    name: str = attrs.field(validator=_is_name)
    options: str = attrs.field(default="", validator=_are_options)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it as it is given on the command line.

        :raises InvalidArgument: it has another form.
        """
        name, _, options = text.partition("=")
        if not name.strip():
            raise InvalidArgument("database", text, _FORM)
        return cls(name.strip(), options.strip())

    @property
    def quoted(self) -> str:
        """The name as the console takes it."""
        return f'"{self.name}"'

    def line(self, address: Address) -> str:
        """Return its line in the section ``[databases]``."""
        found = f"{self.name} = host={address.host} port={address.port} {self.options}"
        return found.rstrip()
