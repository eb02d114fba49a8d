"""The body that runs while a candidate waits: at most one at a time, and none while it leads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from zkelect.core.events import Reason
from zkelect.core.state import Phase, State
from zkelect.errors import SessionClosed, SessionForked
from zkelect.session.leadership import Leadership

if TYPE_CHECKING:
    from zkelect.session.candidacy import Candidacy

__all__ = ["Body", "Over", "Standby"]

_log: Final = logging.getLogger("zkelect")

Over = Callable[[BaseException | None], None]
"""Says that a body has ended, and what it raised; under the session's lock."""


class Body(Protocol):
    """Runs the user's function somewhere; called under the session's lock."""

    def start(self, over: Over) -> None:
        """Let it run; call ``over`` when it has ended, never before this returns."""

    def stop(self) -> None:
        """Tell it that the wait is over; it may take its time."""


class Standby:
    """Lets a body run while its candidate waits behind somebody, once in each campaign.

    A session that expires does not end the wait: the candidate joins again, and its body goes
    on. A body that has not returned when the next campaign waits is waited for first.
    Everything here needs the session's lock.

    :ivar running: whether a body runs, or is about to.
    """

    def __init__(self, candidacy: Candidacy, body: Body) -> None:
        self.running = False
        self._candidacy = candidacy
        self._path: Final = candidacy.path
        self._body = body
        self._state: State = candidacy.driver.machine.state
        self._begun = 0
        self._stopped = False
        self._error: BaseException | None = None
        self._then: Callable[[], None] | None = None

    def moved(self, state: State) -> None:
        """Hear that the candidate is in another phase."""
        self._state = state
        if self._waits:
            self._begin()
        elif self.running and not self._stopped:
            self._stopped = True  # once: a second time would disturb it while it cleans up
            self._body.stop()
        if state.phase is not Phase.PREPARING:
            self._log_error()  # nobody has come for it

    def then(self, call: Callable[[], None]) -> None:
        """Call as soon as no body runs."""
        if self.running:
            self._then = call
        else:
            call()

    def settle(self, leadership: Leadership) -> bool:
        """Wait for the end of the body before a leader prepares.

        :returns: False when the leadership was over first.
        :raises Exception: what the body raised; the leadership is over then.
        """
        changed = self._candidacy.changed
        with changed:
            changed.wait_for(lambda: not self.running or leadership.reason is not None)
            return self.settled(leadership)

    def settled(self, leadership: Leadership) -> bool:
        """Look how it stands when :meth:`settle` need not wait any more."""
        error, self._error = self._error, None
        if error is not None:
            self._candidacy.end(leadership, Reason.UNPREPARED)
            raise error
        if leadership.reason is not None:
            why = ", and standby has not returned yet" if self.running else ""
            _log.warning("%s: lost while preparing (%s)%s", self._path, leadership.reason, why)
        return leadership.reason is None

    def forget(self) -> None:
        """Take it that no body runs: its event loop is gone."""
        self._over(None)

    # --- within ----------------------------------------------------------------------------

    @property
    def _waits(self) -> bool:
        """Whether a body should run: whoever is the first is granted as good as at once."""
        state = self._state
        if state.phase is Phase.JOINING:
            return self._begun == state.campaign  # again, after it has waited
        return state.phase is Phase.WAITING and not (state.first and state.kept_by is None)

    def _begin(self) -> None:
        if self.running or self._begun == self._state.campaign:
            return
        self.running, self._stopped, self._begun = True, False, self._state.campaign
        try:
            self._body.start(self._over)
        except Exception as error:  # noqa: BLE001  # no thread to be had, no event loop any more
            self._over(error)

    def _over(self, error: BaseException | None) -> None:
        self.running = False
        if error is not None:
            self._tell(error)
        self._candidacy.changed.notify_all()
        then, self._then = self._then, None
        if then is not None:
            then()
        if self._waits:
            self._begin()

    def _tell(self, error: BaseException) -> None:
        """Give it to who waits for the campaign, or else to the log: never to nobody."""
        self._error = error
        if self._begun == self._state.campaign:
            if self._state.phase in (Phase.JOINING, Phase.WAITING):
                self._error = None
                self._candidacy.fail(self._begun, error)
            if self._state.phase is Phase.PREPARING:
                return  # settle() raises it
        self._log_error()

    def _log_error(self) -> None:
        error, self._error = self._error, None
        if error is not None and not isinstance(error, SessionClosed | SessionForked):
            _log.error("%s: standby raised", self._path, exc_info=error)
