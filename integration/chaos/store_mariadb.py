"""SqlFence on MariaDB, by PyMySQL. A row gets its number while its writer has the guard's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from servers.mariadb import MariaDb

from chaos.sql_stores import Dialect, SqlStore

if TYPE_CHECKING:
    from chaos.stores import Place, Store

__all__ = ["make"]

_MARIADB: Final = Dialect(
    name="mariadb",
    start=MariaDb,
    own="SELECT CONNECTION_ID()",
    end="KILL CONNECTION :number",
    order="number",
)


def make(place: Place) -> Store:
    """Return the store whose URL is in the run's folder."""
    return SqlStore(place, _MARIADB)
