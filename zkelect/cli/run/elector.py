"""The elector: stands, runs the command while it leads, leaves when all of it is dead."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Final

import zkelect
from zkelect.cli.exits import LOST
from zkelect.cli.failures import tell
from zkelect.cli.run.signal_watch import Caught
from zkelect.cli.run.term import Outcome, TermOfCommand

__all__ = ["Elector"]


class Elector:
    """One candidate, and its command whenever it leads.

    :param election: where it stands.
    :param make_term: of a leadership, how the command is run under it.
    :param wait: seconds to be elected in, the first time; None: as long as it takes.
    :param restart: stand again after a loss, and run the command anew.
    """

    def __init__(
        self,
        election: zkelect.Election,
        make_term: Callable[[zkelect.Leadership], TermOfCommand],
        *,
        wait: float | None,
        restart: bool,
    ) -> None:
        self._election: Final = election
        self._make_term: Final = make_term
        self._wait: Final = wait
        self._restart: Final = restart
        self._lock: Final = threading.Lock()
        self._stop: Final = threading.Event()
        self._term: TermOfCommand | None = None
        self._led = False
        self._told_to_end = False
        self._caught: Caught | None = None
        self._status: int | None = None

    def run(self) -> int:
        """Stand, lead, leave.

        :returns: the exit status: the command's own, 128 + n for a signal that came before there
            was one, LOST when the leadership was lost.
        :raises NotElected: not in time.
        """
        try:
            self._stand()
        except zkelect.NotElected:
            if self._caught is None:
                raise
        if self._status is not None:
            return self._status
        if self._caught is not None:
            return 128 + self._caught.signal
        raise zkelect.NotElected(self._election.path, self._wait, None)

    def hear(self, caught: Caught) -> None:
        """Take a signal: to the command if there is one, otherwise we leave. From any thread."""
        with self._lock:
            if self._term is None:
                self._caught = self._caught or caught
                self._stop.set()
                self._election.resign()
            else:
                self._told_to_end |= caught.signal is signal.SIGTERM
                self._term.pass_on(caught)

    @property
    def serving(self) -> bool:
        """Whether the command runs and leads."""
        term = self._term
        return term is not None and term.serving

    # --- within ------------------------------------------------------------------------------

    def _stand(self) -> None:
        if not self._restart:
            with self._election.campaign(self._wait) as leadership:
                self._lead(leadership)
        elif self._wait is None:
            self._election.run_forever(self._lead, self._stop)
        else:
            timer = threading.Timer(self._wait, self._give_up)
            timer.start()
            try:
                self._election.run_forever(self._lead, self._stop)
            finally:
                timer.cancel()

    def _give_up(self) -> None:
        with self._lock:
            if not self._led:
                self._stop.set()

    def _lead(self, leadership: zkelect.Leadership) -> None:
        term = self._make_term(leadership)
        with self._lock:
            if self._stop.is_set():
                return
            self._led = True
            self._term = term
        try:
            self._conclude(term, term.follow())
        finally:
            with self._lock:
                self._term = None

    def _conclude(self, term: TermOfCommand, outcome: Outcome) -> None:
        if outcome.lost is None:
            self._finish(outcome.status)
            return
        tell(f"leadership of {self._election.path} lost ({outcome.lost}); {term} was ended")
        if not self._restart or self._told_to_end:
            self._finish(LOST)

    def _finish(self, status: int) -> None:
        self._status = status
        self._stop.set()
