"""What the run asks of a guarded store. A further store is one module here and one line.

The director and every candidate make their own :class:`Store` from the same folder. Each
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

    from zkelect.stores.fence import Claimant

__all__ = ["DOMAIN", "STORES", "Row", "Store", "open_store"]

DOMAIN: Final = "chaos"

STORES: Final = {"memory": "store_memory", "sqlite": "store_sqlite"}
"""Names for ``--stores``, each with its module, whose ``make`` takes a folder."""


@attrs.frozen(kw_only=True)
class Row:
    """One accepted write.

    :ivar op: number of the operation, unique in the run; the value that was written.
    :ivar after: the value that the writer had read before; empty at the beginning.
    :ivar token: under which it was written. :ivar at: boot-clock instant inside the transaction.
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

        Where the connection lives in the candidate, the candidate is killed or stopped there;
        the run revives and continues it.
        """


def open_store(name: str, directory: Path) -> Store:
    """Return the store of that name, whose files and sockets are in the folder."""
    make = import_module(f"chaos.{STORES[name]}").make
    store: Store = make(directory)
    return store
