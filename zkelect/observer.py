"""The blocking face of an observer: a loop over who leads."""

from __future__ import annotations

from zkelect.core.znodes import Dialect
from zkelect.session.changes import Changes
from zkelect.session.observer import Observer
from zkelect.session.roll import Candidate
from zkelect.session.session import Session

__all__ = ["Observation"]


class Observation(Changes[Candidate]):
    """Who leads, now and at every change; from :meth:`zkelect.Election.observe`.

    Iterate in one thread; leave the block in any, and the loop ends.
    """

    def __init__(
        self, session: Session, path: str, dialect: Dialect, timeout: float | None
    ) -> None:
        self._observer = Observer(session, path, dialect, session.changed.notify_all)
        super().__init__(self._observer, timeout)

    @property
    def leader(self) -> Candidate | None:
        """Who leads, as far as it is known; what was returned here is not told again."""
        return self._observer.take()

    @property
    def age(self) -> float:
        """Seconds since that was known to be so; 0.0 while it is fresh."""
        return self._observer.age

    @property
    def closed(self) -> bool:
        """Whether the block was left; of a standby body, whether its wait is over."""
        return self._observer.closed
