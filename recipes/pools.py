"""Connection pools in front of a cluster: each is waited for before the primary is closed.

A pool that holds its clients back while the primary is changed spares them errors, if it does so
before the old primary refuses them. So it follows the page as agents do, and says in a note of its
own for which page it is ready; in a planned switch the old primary's agent waits for these.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.recipes.clock import now

if TYPE_CHECKING:
    from zkelect.recipes.board import Board

__all__ = ["Pool", "await_pools"]

_LOOK: Final = 0.02


@attrs.frozen(kw_only=True)
class Pool:
    """What a pool says of itself.

    :ivar ready: serial of the last page for which it has done what it can: no client of its
        reaches the primary any more, or it has given up.
    """

    ready: int = 0


def await_pools(board: Board, serial: int, deadline: float) -> tuple[str, ...]:
    """Wait until all pools that are there are ready for this page.

    :param deadline: instant of the boot clock; nobody is waited for after it.
    :returns: those that are not ready then, by name.
    """
    while True:
        late = tuple(name for name, pool in board.pools().items() if pool.ready != serial)
        if not late or now() >= deadline:
            return late
        time.sleep(_LOOK)
