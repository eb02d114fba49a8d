"""The body that runs while a candidate waits, for threads: told who leads, and ended in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from zkelect.observer import Observation
from zkelect.session.standby import Over, Standby

if TYPE_CHECKING:
    from zkelect.session.candidacy import Candidacy

__all__ = ["stand_by"]


def stand_by(candidacy: Candidacy, function: Callable[[Observation], object]) -> None:
    """Let the function run whenever this candidate waits behind somebody."""
    candidacy.standby = Standby(candidacy, _Thread(candidacy, function))


class _Thread:
    """Runs the function on a thread of its own, which there is only while it runs.

    A :class:`zkelect.session.standby.Body`.
    """

    def __init__(self, candidacy: Candidacy, function: Callable[[Observation], object]) -> None:
        self._candidacy = candidacy
        self._function = function
        self._leaders: Observation | None = None

    def start(self, over: Over) -> None:
        """Begin to observe, and to run."""
        candidacy = self._candidacy
        leaders = Observation(candidacy.session, candidacy.path, candidacy.dialect, None)
        thread = threading.Thread(
            target=self._run,
            args=(leaders, over),
            name=f"zkelect standby {candidacy.path}",
            daemon=True,
        )
        self._leaders = leaders
        leaders.__enter__()
        try:
            thread.start()
        except BaseException:
            leaders.close()
            raise

    def stop(self) -> None:
        """End its loop over the leaders."""
        if self._leaders is not None:
            self._leaders.close()

    def _run(self, leaders: Observation, over: Over) -> None:
        raised: BaseException | None = None
        try:
            self._function(leaders)
        except BaseException as error:  # noqa: BLE001  # whoever waits for the campaign gets it
            raised = error
        leaders.close()
        if not self._candidacy.session.foreign:
            self._candidacy.session.deliver(over, raised)
