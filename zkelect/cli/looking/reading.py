"""Reading an election again and again, each candidate's znode once: it never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.session.overview import Overview, Standing, read_overview, read_standings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zkelect.core.znodes import Entry
    from zkelect.session.session import Session

__all__ = ["Reading"]

_BATCH: Final = 1000
"""Candidates that are asked for together; each batch has the time that one answer has."""


class Reading:
    """What was read of one election.

    :param path: in its one right spelling. :param timeout: seconds to wait for an answer.
    """

    def __init__(self, session: Session, path: str, timeout: float) -> None:
        self._session = session
        self._path = path
        self._timeout = timeout
        self._standings: dict[str, Standing] = {}

    @property
    def standings(self) -> Mapping[str, Standing]:
        """What is known of candidates, by znode."""
        return self._standings

    def overview(self) -> Overview:
        """Read everything but the candidates' znodes; forget those that have left."""
        overview = read_overview(self._session, self._path, self._timeout)
        here = {entry.node for entry in overview.roll.entries}
        for node in self._standings.keys() - here:
            del self._standings[node]
        return overview

    def read(self, entries: Iterable[Entry]) -> None:
        """Read those of the candidates that are not known yet."""
        unknown = [entry for entry in entries if entry.node not in self._standings]
        for start in range(0, len(unknown), _BATCH):
            batch = unknown[start : start + _BATCH]
            found = read_standings(self._session, self._path, batch, self._timeout)
            self._standings.update(found)
