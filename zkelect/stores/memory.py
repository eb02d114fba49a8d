"""The executable model of a guarded store: the rule with nothing around it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zkelect.errors import StoreBusy
from zkelect.stores.fence import Claimant, Gate, patience, present, valid_timeout
from zkelect.stores.mark import Mark
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MemoryFence"]


class MemoryFence:
    """A guarded list in this process: for tests, and to read what every store must do.

    Promises: claims and transactions happen one after the other, each whole or not at all;
    none of an older token after a higher one's claim. Does not promise: anything to another
    process, or after this one. Any thread may use it. No round trips.

    :param domain: which election guards it: 1 to 255 printable characters.
    :param timeout: seconds to wait for another thread's transaction, more than 0.
    :raises InvalidArgument: an argument is outside its range.
    """

    def __init__(self, *, domain: str, timeout: float = 5.0) -> None:
        self._gate = Gate(store="memory", domain=domain)
        self._timeout = valid_timeout(timeout)
        self._turn = threading.Lock()
        self._mark: Mark | None = None
        self._log: list[tuple[Token, object]] = []

    @property
    def log(self) -> tuple[tuple[Token, object], ...]:
        """Every accepted write in order, with the token it was written under."""
        return tuple(self._log)

    def claim(self, claimant: Claimant) -> None:
        """Raise the mark to the claimant's token; see :meth:`SqliteFence.claim`."""
        with self._alone(claimant):
            self._mark = self._gate.claim(self._mark, claimant)
            self._gate.confirm(self._mark)

    @contextmanager
    def transaction(self, claimant: Claimant) -> Iterator[list[object]]:
        """Lend an empty list; what it holds when the block ends well is appended to the log."""
        if isinstance(claimant, Token) and claimant != self._gate.floor:
            self.claim(claimant)
        writes: list[object] = []
        with self._alone(claimant):
            self._gate.guard(self._mark, claimant)
            yield writes
            token = present(claimant)
            self._log.extend((token, write) for write in writes)

    def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed."""
        return self._mark

    def restore(self, mark: Mark | None) -> None:
        """Set the mark back, as the restore of an old backup does: for tests of the loss."""
        with self._turn:
            self._mark = mark

    @contextmanager
    def _alone(self, claimant: Claimant) -> Iterator[None]:
        token = present(claimant)
        seconds = patience(claimant, self._timeout)
        if not self._turn.acquire(timeout=seconds):
            raise StoreBusy(
                store=self._gate.store,
                domain=self._gate.domain,
                token=token,
                mark=None if self._mark is None else self._mark.token,
                detail=f"another transaction of this process held it for {seconds:g} s",
            )
        try:
            yield
        finally:
            self._turn.release()
