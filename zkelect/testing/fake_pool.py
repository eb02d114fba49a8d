"""Callbacks that run when they are called upon, on the thread that does it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable

from zkelect.session.pool import CallbackPool

__all__ = ["TurnedPool"]

_log = logging.getLogger("zkelect.callbacks")


class TurnedPool(CallbackPool):
    """A session's callbacks without threads: :meth:`run_next` runs one of them.

    All of them are serial, in the order in which they were submitted. A callback must not
    wait for an answer of the servers: nobody would let it through.

    :ivar waiting: what was submitted and has not run: lane, label, call.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(now)
        self.waiting: deque[tuple[Hashable, str, Callable[[], None]]] = deque()
        self._lane: Hashable | None = None
        self._shut = False

    def submit(self, lane: Hashable, label: str, call: Callable[[], None]) -> None:
        """Keep it until its turn."""
        if not self._shut:
            self.waiting.append((lane, label, call))

    def follow(self, lane: Hashable, label: str, call: Callable[[], None]) -> None:
        """Keep it when something of its lane is kept, or runs."""
        if lane is self._lane or any(waiting[0] is lane for waiting in self.waiting):
            self.submit(lane, label, call)
        else:
            call()

    def run_next(self) -> None:
        """Run the oldest one; what it raises is logged, as on a thread."""
        self._lane, label, call = self.waiting.popleft()
        try:
            call()
        except Exception:  # noqa: BLE001  # the user's: heard here, must not end the pool
            _log.exception("%s raised", label)
        finally:
            self._lane = None

    def watch(self, now: float, patience: float) -> None:
        """Nothing can run for long here: no time passes while it runs."""

    def current_lane(self) -> Hashable | None:
        """Return the lane whose callback is just running."""
        return self._lane

    def close(self) -> None:
        """Take no more."""
        self._shut = True
