"""kazoo's connection loop may end by itself; it is started anew, ever more seldom."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zkelect.session.session import Session

__all__ = ["Restarts"]

_log: Final = logging.getLogger("zkelect.session")
_LONGEST_PAUSE: Final = 32.0


class Restarts:
    """Counts the starts that came to nothing; used under the session's lock."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._in_vain = 0

    def succeeded(self) -> None:
        """Hear that there is a connection."""
        self._in_vain = 0

    def plan(self) -> None:
        """Start anew after a pause: at first a second, doubled each time."""
        pause = min(2.0**self._in_vain, _LONGEST_PAUSE)
        self._in_vain += 1
        _log.error("kazoo's connection loop ended by itself; started anew in %g s", pause)
        self._session.call_at(self._session.now() + pause, self._start)

    def _start(self) -> None:
        """On a thread of its own: kazoo waits for its old ones to end."""
        if not self._session.ended:
            restart = self._session.link.restart
            threading.Thread(target=restart, name="zkelect restart", daemon=True).start()
