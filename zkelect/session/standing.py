"""Standing without a thread of one's own: everything happens in callbacks and timers."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any, Final

from zkelect.core.events import Reason
from zkelect.core.holddown import FIRST_BACKOFF, HoldDown, ceiling
from zkelect.core.znodes import Dialect
from zkelect.errors import LeadershipLost, Misuse, ZkelectError
from zkelect.session.candidacy import Candidacy
from zkelect.session.gateway import Failure
from zkelect.session.leadership import Leadership
from zkelect.session.ticker import Timer

__all__ = ["Standing", "take_office"]

_log: Final = logging.getLogger("zkelect")


def take_office(
    candidacy: Candidacy,
    leadership: Leadership,
    eligible: Callable[[], bool] | None,
    prepare: Callable[[Leadership], None] | None,
) -> bool:
    """Ask once more whether we are fit, catch up, and serve.

    :returns: False when it did not work out; the leadership has ended then.
    """
    if eligible is not None and not eligible():
        candidacy.end(leadership, Reason.INELIGIBLE)
        return False
    try:
        if prepare is not None:
            prepare(leadership)
        candidacy.prepared(leadership)
    except LeadershipLost as lost:
        _log.warning("lost while preparing: %s", lost)
        return False
    except Exception:  # noqa: BLE001  # the user's: heard here, survived by leaving
        _log.exception("%s: prepare failed; %s leaves", candidacy.path, candidacy.name)
        candidacy.end(leadership, Reason.UNPREPARED)
        return False
    return True


class Standing:
    """Campaigns again and again until it is ended.

    User code runs on the session's callback threads, in the candidate's own lane: so
    ``deposed`` has returned before the znode is released.
    """

    def __init__(
        self,
        candidacy: Candidacy,
        *,
        dialect: Dialect,
        hold_down: HoldDown,
        eligible: Callable[[], bool] | None,
        prepare: Callable[[Leadership], None] | None,
    ) -> None:
        self._candidacy = candidacy
        self._session = candidacy.session
        self._dialect = dialect
        self._hold_down = hold_down
        self._eligible = eligible
        self._prepare = prepare
        self._ended = False
        self._failures = 0
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Stand as soon as we are eligible."""
        self._session.ensure_usable()
        with self._session.lock:
            self._candidacy.attendant = self
            self._submit("eligible", self._stand)

    def end(self, timeout: float) -> bool:
        """Leave; wait for so many seconds until nothing is left, unless called back."""
        if self._session.foreign:
            return True  # nothing here is ours; the lock may never be free again
        with self._session.lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            self._candidacy.withdraw()
        if self._session.pool.current_lane() is self._candidacy:
            return False
        return self._candidacy.wait_left(timeout)

    # --- attendant: under the lock ---------------------------------------------------------

    def granted(self, leadership: Leadership) -> None:
        """Prepare on a callback thread."""
        self._failures = 0
        self._submit("prepare", lambda: self._take_office(leadership))

    def voided(self, leadership: Leadership) -> None:
        """Behind ``deposed``: the body is over."""
        self._hold_down.end(
            self._session.now(),
            involuntary=leadership.reason != Reason.RESIGNED,
            unprepared=leadership.reason == Reason.UNPREPARED,
        )
        self._submit("deposed", lambda: self._candidacy.returned(leadership))

    def failed(self, error: ZkelectError) -> None:
        """Nobody waits for the error, so it is logged; the next try comes later."""
        self._failures += 1
        _log.error("%s: the campaign failed: %s", self._candidacy.path, error)
        self._later(FIRST_BACKOFF + random.random() * ceiling(self._failures))

    def finished(self) -> None:
        """Stand again, behind the others."""
        if self._ended or self._timer is not None:
            return
        if self._session.connected:
            self._session.gateway.children(self._candidacy.path, self._hold)
        else:
            self._later(self._hold_down.wait(random.random(), others=False))

    def closed(self) -> None:
        """Do nothing more: the next try finds the session closed."""

    # --- within ----------------------------------------------------------------------------

    def _submit(self, what: str, call: Callable[[], None]) -> None:
        self._session.pool.submit(self._candidacy, f"{self._candidacy.path}: {what}", call)

    def _stand(self) -> None:
        if self._ended:
            return
        if not self._is_eligible():
            with self._session.lock:
                self._later(self._session.timeout / 4)
            return
        try:
            self._candidacy.begin()
        except Misuse as error:
            if not self._session.ended:
                _log.error("%s", error)

    def _is_eligible(self) -> bool:
        """Nobody waits for what it raises: that is logged, and counts as no."""
        if self._eligible is None:
            return True
        try:
            return self._eligible()
        except Exception:  # noqa: BLE001  # the user's
            _log.exception("%s: eligible raised", self._candidacy.path)
            return False

    def _take_office(self, leadership: Leadership) -> None:
        done = False
        try:
            done = take_office(self._candidacy, leadership, self._eligible, self._prepare)
        finally:
            if not done:
                self._candidacy.end(leadership, Reason.UNPREPARED)

    def _hold(self, answer: Any) -> None:
        children = () if isinstance(answer, Failure) else answer
        others = bool(self._dialect.read(children).entries)
        self._later(self._hold_down.wait(random.random(), others=others))

    def _later(self, delay: float) -> None:
        def call() -> None:
            self._timer = None
            self._submit("eligible", self._stand)

        if not self._ended:
            self._timer = self._session.call_at(self._session.now() + delay, call)
