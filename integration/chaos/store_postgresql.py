"""SqlFence on PostgreSQL, by psycopg. The server itself tells when each row was committed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from servers.postgresql import PostgreSql

from chaos.sql_stores import Dialect, SqlStore

if TYPE_CHECKING:
    from chaos.stores import Place, Store

__all__ = ["make"]

_POSTGRESQL: Final = Dialect(
    name="postgresql",
    start=partial(PostgreSql, {"track_commit_timestamp": "on"}),
    own="SELECT pg_backend_pid()",
    end="SELECT pg_terminate_backend(:number)",
    order="pg_xact_commit_timestamp(xmin), number",
)


def make(place: Place) -> Store:
    """Return the store whose URL is in the run's folder."""
    return SqlStore(place, _POSTGRESQL)
