"""Who may write: nobody until the server is opened.

The lock is ``default_transaction_read_only``, on each server that is not open and written where
it outlives a restart. It was chosen over pg_hba.conf and over stopping a pool because it ends no
session: readers of a standby go on reading while it is promoted, and write when it is opened.

What it does not stop: a session that asks for ``READ WRITE`` by itself. Between promotion and
opening, a moment, such a session may write to the new primary; at no time to any other server,
for those are in recovery, or down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.recipes.postgres.settings import apply

if TYPE_CHECKING:
    from zkelect.recipes.postgres.place import Place

__all__ = ["CLOSED", "close", "open_for_writes"]

_LOCK: Final = "default_transaction_read_only"
CLOSED: Final = {_LOCK: "on"}
"""The settings of a server that nobody writes to."""


def close(place: Place, deadline: float) -> None:
    """Let nobody begin to write; transactions that are open go on."""
    apply(place, CLOSED, deadline)


def open_for_writes(place: Place, deadline: float) -> None:
    """Let everybody write."""
    apply(place, {_LOCK: "off"}, deadline)
