"""Where one PostgreSQL server is: its data directory, its programs, its addresses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import attrs
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from zkelect import InvalidArgument
from zkelect.recipes.paths import absolute

__all__ = ["Place", "check_address"]

_SIGNAL: Final = "standby.signal"
# Where distributions put a major version's programs; Debian keeps them out of the PATH.
_FOLDERS: Final = (
    "/usr/lib/postgresql/{version}/bin",
    "/usr/pgsql-{version}/bin",
    "/usr/local/pgsql/bin",
)


def _parsed(name: str, conninfo: str) -> dict[str, Any]:
    """Read a connection string; it is not shown, for it may have a password."""
    try:
        fields = dict(conninfo_to_dict(conninfo))
    except ProgrammingError:
        expected = "libpq's connection string, such as 'host=10.0.0.1 port=5432'"
        raise InvalidArgument(name, "…", expected) from None
    if "password" in fields:
        expected = "no password, which ps and logs would show: name a file, passfile=…"
        raise InvalidArgument(name, "…password=…", expected)
    return fields


def _is_conninfo(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    _parsed(attribute.name, value)


def _names_no_server(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    """Else every address that it is added to would be the same server's."""
    fields = _parsed(attribute.name, value)
    if named := sorted({"host", "hostaddr", "port", "service"}.intersection(fields)):
        expected = f"no {', '.join(named)}: who is asked, each member's address says"
        raise InvalidArgument(attribute.name, value, expected)


def check_address(address: str) -> None:
    """Look whether a member's address is one by which others reach it.

    :raises InvalidArgument: it is not.
    """
    fields = _parsed("address", address)
    if not (fields.get("host") or fields.get("hostaddr")):
        raise InvalidArgument("address", address, "with a host, 'host=10.0.0.1 port=5432'")


@attrs.frozen(kw_only=True)
class Place:
    """One server as its agent sees it, on the same host.

    :ivar data_directory: of this server alone.
    :ivar local: libpq's connection string for our own server, as a superuser, to a database
        that exists: ``host=/var/run/postgresql port=5432 user=postgres dbname=postgres``.
    :ivar credentials: what is added to another member's address to reach it, ``user=…
        dbname=… passfile=…``; a superuser with REPLICATION. No passwords: a passfile.
    :ivar options: for ``postgres``, at each start: ``-c config_file=/etc/postgresql/15/main/…``.
    :ivar programs: the folder of pg_ctl, pg_rewind and so on; None: found by the version.
    :ivar log: what the server prints before its own logging begins; None: beside the data.
    :ivar slots: hold the WAL for each follower by a physical slot on the primary.
    """

    data_directory: Path = attrs.field(converter=absolute)
    local: str = attrs.field(validator=_is_conninfo)
    credentials: str = attrs.field(validator=_names_no_server)
    options: tuple[str, ...] = ()
    programs: Path | None = None
    log: Path | None = attrs.field(default=None, converter=attrs.converters.optional(absolute))
    slots: bool = False

    @property
    def signal(self) -> Path:
        """The file whose presence makes a server start as a standby."""
        return self.data_directory / _SIGNAL

    @property
    def settings(self) -> Path:
        """The file that ALTER SYSTEM writes; it wins over postgresql.conf."""
        return self.data_directory / "postgresql.auto.conf"

    @property
    def rewinding(self) -> Path:
        """Beside the data, since pg_rewind deletes what the source does not have."""
        return self.data_directory.with_name(f"{self.data_directory.name}.rewinding")

    @property
    def log_file(self) -> Path:
        """Where pg_ctl sends what the server prints."""
        return self.log or self.data_directory.with_name(f"{self.data_directory.name}.log")

    @property
    def version(self) -> str:
        """The major version that made the data directory.

        :raises InvalidArgument: it is none.
        """
        try:
            return (self.data_directory / "PG_VERSION").read_text("ascii").strip()
        except OSError as error:
            expected = f"a PostgreSQL data directory ({error})"
            raise InvalidArgument("data_directory", str(self.data_directory), expected) from error

    @property
    def owner(self) -> tuple[int, int]:
        """User and group of the data directory: the server runs as no other user."""
        found = self.data_directory.stat()
        return found.st_uid, found.st_gid

    def program(self, name: str) -> str:
        """Return a program's full path.

        :raises InvalidArgument: there is none of this version.
        """
        version = self.version
        folders = [folder.format(version=version) for folder in _FOLDERS]
        folders = [str(self.programs)] if self.programs is not None else folders
        for folder in folders:
            if os.access(found := Path(folder) / name, os.X_OK):
                return str(found)
        expected = f"the folder of PostgreSQL {version}'s {name}; not in {', '.join(folders)}"
        raise InvalidArgument("programs", self.programs and str(self.programs), expected)

    def remote(self, address: str, **parameters: str) -> str:
        """Return the connection string for another member.

        :param address: its address, ``host=10.0.0.2 port=5432``.
        :raises InvalidArgument: it is none.
        """
        ours = _parsed("credentials", self.credentials)
        return make_conninfo("", **{**_parsed("address", address), **ours, **parameters})
