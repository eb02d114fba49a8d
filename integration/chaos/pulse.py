"""Whether the ensemble commits: serving is not enough.

ZooKeeper 3.8.0 has a state in which its leader and all followers say that they serve, answer
reads and pings, and commit nothing, until another fault makes them elect anew. Seen twice in an
hour of chaos, each time after two followers lost their leader for less than a second and came
back to it with a proposal under way. No election is possible then, whoever holds it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from chaos.history import boottime

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PULSE", "Pulse", "pulse"]

PULSE: Final = "/chaos-pulse"
_ANSWERED_WITHIN: Final = 1.0


class Pulse:
    """A client of the director's, with a session of its own."""

    def __init__(self, kazoo: KazooClient) -> None:
        self._kazoo = kazoo

    def beat(self, within: float) -> bool:
        """Whether a write was acknowledged within so many seconds."""
        deadline = boottime() + within
        while boottime() < deadline:
            try:
                self._kazoo.set_async(PULSE, b"").get(timeout=_ANSWERED_WITHIN)
            except (KazooException, KazooTimeoutError):
                continue
            return True
        return False


@contextmanager
def pulse(hosts: str) -> Iterator[Pulse]:
    """Connect to the ensemble, which is well now."""
    kazoo = KazooClient(hosts, timeout=10.0)
    kazoo.start(timeout=30.0)
    try:
        kazoo.ensure_path(PULSE)
        yield Pulse(kazoo)
    finally:
        kazoo.stop()
        kazoo.close()
