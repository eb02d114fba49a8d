"""What the run asks of a guarded store. A further store is one module here and one line.

The director and every candidate make their own :class:`Store` at the same place. Each
store keeps a *log*: in the transaction that is guarded the candidate appends a row which
names the row before, as it read it. So the log is a chain, and the checker sees in it what
the store has let pass, in which order.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import zkelect
    from zkelect.stores.fence import Claimant

__all__ = ["DOMAIN", "SMALL", "STORES", "Place", "Row", "Store", "open_store"]

DOMAIN: Final = "chaos"

STORES: Final = {
    "file": "store_file",
    "mariadb": "store_mariadb",
    "memory": "store_memory",
    "postgresql": "store_postgresql",
    "redis": "store_redis",
    "s3": "store_s3",
    "sqlite": "store_sqlite",
    "znode": "store_znode",
}
"""Names for ``--stores``, each with its module, whose ``make`` takes a place."""

SMALL: Final = ("file", "memory", "sqlite", "znode")
"""Those that need nothing beside zkelect itself."""


@attrs.frozen(kw_only=True)
class Place:
    """Where a store is opened.

    :ivar directory: of the run: files, sockets, and where a server of the store's is written.
    :ivar hosts: the ensemble. :ivar session: the candidate's; None for the director.
    """

    directory: Path
    hosts: str
    session: zkelect.Session | None = None


@attrs.frozen(kw_only=True)
class Row:
    """One accepted write.

    :ivar op: number of the operation, unique in the run; the value that was written.
    :ivar after: the value that the writer had read before; empty at the beginning.
    :ivar token: under which it was written.
    :ivar at: boot-clock instant inside the transaction; where that is a single request, before
        it was sent. Never after the commit.
    """

    op: str
    after: str
    token: str
    at: float = 0.0


class Store(Protocol):
    """A guarded store as the run uses it."""

    def serve(self) -> AbstractContextManager[None]:
        """Have it ready for the block: tables, a server. The director's; candidates come later."""

    def claim(self, claimant: Claimant) -> None:
        """Raise the mark; raises as the library's store does, anything else means unknown."""

    def read(self) -> str:
        """Return the latest value, unguarded; empty when there is none."""

    def append(self, claimant: Claimant, row: Row) -> None:
        """Write a row in one guarded transaction; raises as :meth:`claim` does."""

    def log(self) -> Sequence[Row]:
        """Return all rows in the order of their commits."""

    def disturb(self) -> AbstractContextManager[None]:
        """While the block lasts, end the next writer's connection in mid-transaction.

        Where the transaction is in the candidate itself, the candidate is killed or stopped
        there; the run revives and continues it.
        """


def open_store(name: str, place: Place) -> Store:
    """Return the store of that name, at this place."""
    make = import_module(f"chaos.{STORES[name]}").make
    store: Store = make(place)
    return store
