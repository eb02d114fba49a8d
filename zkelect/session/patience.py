"""How long a caller waits: until a deadline, a stop event, or the end of the session."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from zkelect.errors import NotElected
from zkelect.session.limits import check_timeout

if TYPE_CHECKING:
    from zkelect.session.candidacy import Candidacy

__all__ = ["Patience", "Stopped"]

_STOP_INTERVAL: Final = 0.1
"""Seconds between two looks at a stop event, which cannot be waited for beside another."""


class Stopped(Exception):  # not an error: the caller's own wish
    """The stop event is set."""


class Patience:
    """One deadline for a whole campaign, however often the queue moves (H37).

    :param timeout: seconds from now; None: no deadline. :param stop: looked at while waiting.
    :raises InvalidArgument: a negative timeout.
    """

    def __init__(
        self, candidacy: Candidacy, timeout: float | None, stop: threading.Event | None = None
    ) -> None:
        check_timeout(timeout)
        self._candidacy = candidacy
        self._session = candidacy.session
        self._timeout = timeout
        self._deadline = None if timeout is None else self._session.now() + timeout
        self._stop = stop
        self._heeding = False

    def __enter__(self) -> Self:
        """Resign as soon as the stop event is set, also while a body runs."""
        self._heeding = self._stop is not None
        with self._session.lock:
            self._heed()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Heed it no more."""
        self._heeding = False

    def wait(self) -> None:
        """Wait for news of the candidate; needs the session's lock.

        :raises NotElected: the deadline has passed. :raises Stopped: stop was set.
        """
        self._candidacy.changed.wait(self._left())

    def pause(self, seconds: float) -> None:
        """Let so many seconds pass, unless something ends the wait.

        :raises NotElected: the deadline has passed. :raises Stopped: stop was set.
        """
        until = self._session.now() + seconds
        with self._session.changed:
            while (rest := until - self._session.now()) > 0:
                left = self._left()
                self._session.changed.wait(rest if left is None else min(rest, left))
                self._session.ensure_usable()

    def heed(self) -> None:
        """Raise Stopped if the stop event is set: then the campaign ended because of it."""
        if self._stop is not None and self._stop.is_set():
            raise Stopped

    def _left(self) -> float | None:
        self.heed()
        if self._deadline is None:
            return None if self._stop is None else _STOP_INTERVAL
        left = self._deadline - self._session.now()
        if left <= 0:
            candidacy = self._candidacy
            raise NotElected(candidacy.path, self._timeout, candidacy.ahead, candidacy.pause)
        return left if self._stop is None else min(left, _STOP_INTERVAL)

    def _heed(self) -> None:
        if not self._heeding or self._stop is None:
            return
        if self._stop.is_set():
            self._candidacy.withdraw()
        else:
            self._session.call_at(self._session.now() + _STOP_INTERVAL, self._heed)
