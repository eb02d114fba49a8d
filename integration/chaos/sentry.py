"""Looks at one leadership all the time, and writes down what its lease has claimed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from chaos.history import boottime
from zkelect import Lost

if TYPE_CHECKING:
    from chaos.history import Writer
    from zkelect import Leadership

__all__ = ["Sentry"]

_LOOK_EVERY: Final = 0.002


class Sentry:
    """Writes ``granted``, ``leased`` at each renewal, and ``ended``; on a thread.

    What it writes is never more than was claimed: an instant is read before the check that
    passed, a deadline after it.
    """

    def __init__(self, leadership: Leadership, history: Writer) -> None:
        self._leadership = leadership
        self._history = history
        self._token = str(leadership.token)
        history.write(
            "granted",
            at=leadership.progressed,  # nobody has called progress() yet: it is the grant
            token=self._token,
            node=leadership.node,
            session=f"{leadership.session_id:#x}",
        )
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def relieve(self) -> None:
        """Wait until the leadership is over and that is written."""
        self._thread.join()

    def _look(self) -> None:
        passed = told = self._leadership.progressed
        while True:
            before = boottime()
            try:
                self._leadership.check()
            except Lost:
                break
            passed, deadline = before, self._leadership.deadline
            if told < deadline:
                told = deadline
                self._history.write("leased", at=passed, token=self._token, deadline=deadline)
            self._leadership.wait_lost(_LOOK_EVERY)
        reason = str(self._leadership.reason)
        self._history.write("ended", token=self._token, reason=reason, passed=passed)
