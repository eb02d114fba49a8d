"""Who is told how a candidate gets on: those who listen, and who acts for it."""

from __future__ import annotations

from typing import Protocol

from zkelect.session.leadership import Leadership

__all__ = ["Attendant", "Callbacks"]


class Callbacks(Protocol):
    """What :meth:`Election.listen` takes: called serially, on a thread of the library's."""

    def elected(self, leadership: Leadership) -> None:
        """We lead, and have prepared."""

    def suspended(self, leadership: Leadership) -> None:
        """The link is down; the lease still runs."""

    def deposed(self, leadership: Leadership) -> None:
        """It is over, whatever the cause; exactly once after each ``elected``."""


class Attendant(Protocol):
    """Who acts for a candidate that has no thread of its own; called under the lock."""

    def granted(self, leadership: Leadership) -> None: ...
    def voided(self, leadership: Leadership) -> None: ...
    def failed(self, error: BaseException) -> None: ...
    def finished(self) -> None: ...
    def closed(self) -> None: ...
