"""FileFence: the file is the log, replaced as a whole by one with a row more.

Its transaction lives in the candidate: who is about to give the new file its name is killed
or stopped there, with the lock in its hands.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from chaos.traps import FALLS, Trap, fall
from zkelect.stores import FileFence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from chaos.stores import Place, Store
    from zkelect.stores.fence import Claimant

__all__ = ["make"]

_TIMEOUT: Final = 2.0


class _File:
    """Appends to what was read last: who reads, and replaces too late, would undo others' rows."""

    def __init__(self, place: Place) -> None:
        self._path = place.directory / "file.log"
        self._trap = Trap(place.directory / "file.trap", FALLS)
        self._fence = FileFence(self._path, domain=DOMAIN, timeout=_TIMEOUT)
        self._known = b""
        if place.session is not None:
            sys.addaudithook(self._look)

    @contextmanager
    def serve(self) -> Iterator[None]:
        yield

    def claim(self, claimant: Claimant) -> None:
        self._fence.claim(claimant)

    def read(self) -> str:
        self._known = self._path.read_bytes() if self._path.exists() else b""
        latest = _rows(self._known[self._known.rfind(b"\n", 0, -1) + 1 :])
        return latest[0].op if latest else ""

    def append(self, claimant: Claimant, row: Row) -> None:
        told = json.dumps(attrs.asdict(attrs.evolve(row, at=boottime())))
        self._fence.replace(claimant, self._known + f"{told}\n".encode())

    def log(self) -> Sequence[Row]:
        return _rows(self._path.read_bytes())

    def disturb(self) -> AbstractContextManager[None]:
        return self._trap.laid()

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Python tells of each renaming before it does it (its documentation, "Audit events")."""
        if event == "os.rename" and arguments[1] == self._path.name:
            fall(self._trap.spring())


def _rows(content: bytes) -> list[Row]:
    return [Row(**json.loads(line)) for line in content.splitlines()]


def make(place: Place) -> Store:
    """Return the store whose file is in the run's folder."""
    return _File(place)
