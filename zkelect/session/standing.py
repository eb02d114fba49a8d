"""Standing without a thread of one's own: everything happens in callbacks and timers."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from zkelect.core.events import Reason
from zkelect.core.holddown import FIRST_BACKOFF, HoldDown, ceiling
from zkelect.core.state import Phase
from zkelect.core.znodes import Dialect
from zkelect.errors import LeadershipLost, Misuse, ZkelectError
from zkelect.session.candidacy import Candidacy
from zkelect.session.gateway import Failure
from zkelect.session.leadership import Leadership
from zkelect.session.status import Status, read_status
from zkelect.session.ticker import Timer

__all__ = ["Standing", "Steward", "take_office"]

_log: Final = logging.getLogger("zkelect")


def take_office(
    candidacy: Candidacy,
    leadership: Leadership,
    eligible: Callable[[], bool] | None,
    prepare: Callable[[Leadership], None] | None,
) -> bool:
    """End the standby body, ask once more whether we are fit, catch up, and serve.

    :returns: False when it did not work out; the leadership has ended then.
    :raises Exception: what the standby body raised, or ``eligible``.
    """
    if candidacy.standby is not None and not candidacy.standby.settle(leadership):
        return False
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


class Steward(Protocol):
    """Who decides for several candidates of one process together; called under the lock."""

    def admit(self, standing: Standing) -> bool:
        """Whether it may stand now; if not, the steward begins it later."""

    def seat(self, standing: Standing) -> bool:
        """Whether it may lead, now that it is granted a term."""

    def vacate(self, standing: Standing) -> None:
        """The body of its term is over."""

    def left(self, standing: Standing) -> bool:
        """Nothing of its campaign is left: whether it may stand again; if not, as above."""


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
        steward: Steward | None = None,
    ) -> None:
        self._candidacy = candidacy
        self._session = candidacy.session
        self._dialect = dialect
        self._hold_down = hold_down
        self._eligible = eligible
        self._prepare = prepare
        self._steward = steward
        self._ended = False
        self._failures = 0
        self._timer: Timer | None = None

    @property
    def path(self) -> str:
        """The election."""
        return self._candidacy.path

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        return self._candidacy.phase

    def status(self) -> Status:
        """Return where it stands at this moment."""
        return read_status(self._candidacy)

    @property
    def leadership(self) -> Leadership | None:
        """The latest one; it may be over."""
        return self._candidacy.leadership

    @property
    def decided(self) -> bool:
        """Whether it has found its place, or pauses, since it was begun."""
        return self._timer is not None or self.phase not in (Phase.IDLE, Phase.JOINING)

    def begin(self) -> None:
        """Stand as soon as we are eligible."""
        self._session.ensure_usable()
        with self._session.lock:
            self._candidacy.attendant = self
            self._stand_soon()

    def end(self, timeout: float) -> bool:
        """Leave; wait for so many seconds until nothing is left, unless called back."""
        if self._session.foreign:
            return True  # nothing here is ours; the lock may never be free again
        self.leave()
        if self._session.pool.current_lane() is self._candidacy:
            return False
        return self.wait_left(timeout)

    def leave(self) -> None:
        """Leave for good, without waiting."""
        if self._session.foreign:
            return
        with self._session.lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            self._candidacy.withdraw()

    def step_aside(self) -> None:
        """Leave the queue for now; the steward says when to stand again."""
        self._candidacy.withdraw()

    def wait_left(self, timeout: float) -> bool:
        """Wait for so many seconds until nothing is left; return whether that is so."""
        return self._candidacy.wait_left(timeout)

    # --- attendant: under the lock ---------------------------------------------------------

    def granted(self, leadership: Leadership) -> None:
        """Prepare, on a callback thread if there is anything to do; the steward may decline."""
        self._failures = 0
        if self._steward is not None and not self._steward.seat(self):
            self._candidacy.end(leadership, Reason.DECLINED)
            return
        users = (self._eligible, self._prepare, self._candidacy.standby)
        submit = self._follow if users == (None, None, None) else self._submit
        prepare = partial(submit, "prepare", lambda: self._take_office(leadership))
        if self._candidacy.standby is None:
            prepare()
        else:
            self._candidacy.standby.then(prepare)  # so that it holds no callback thread meanwhile

    def voided(self, leadership: Leadership) -> None:
        """Behind ``deposed``: the body is over."""
        self._hold_down.end(
            self._session.now(),
            involuntary=leadership.reason is None or not leadership.reason.voluntary,
            unprepared=leadership.reason == Reason.UNPREPARED,
        )
        self._follow("deposed", lambda: self._return(leadership))

    def failed(self, error: BaseException) -> None:
        """Nobody waits for the error, so it is logged; the next try comes later."""
        self._failures += 1
        users = None if isinstance(error, ZkelectError) else error
        _log.error("%s: the campaign failed: %s", self._candidacy.path, error, exc_info=users)
        self._later(FIRST_BACKOFF + random.random() * ceiling(self._failures))

    def finished(self) -> None:
        """Stand again, behind the others."""
        again = self._steward is None or self._steward.left(self)
        if self._ended or self._timer is not None or not again:
            return
        if self._session.connected:
            self._session.gateway.children(self._candidacy.path, self._hold)
        else:
            alone = self._hold_down.wait(random.random(), others=False)
            self._later(max(alone, self._session.roster.rest()))

    def closed(self) -> None:
        """Do nothing more: the next try finds the session closed."""

    # --- within ----------------------------------------------------------------------------

    def _submit(self, what: str, call: Callable[[], None]) -> None:
        self._session.pool.submit(self._candidacy, f"{self._candidacy.path}: {what}", call)

    def _follow(self, what: str, call: Callable[[], None]) -> None:
        self._session.pool.follow(self._candidacy, f"{self._candidacy.path}: {what}", call)

    def _stand_soon(self) -> None:
        """Only a user's function needs a thread of its own: ten thousand ask for none."""
        if self._eligible is None:
            self._stand()
        else:
            self._submit("eligible", self._stand)

    def _stand(self) -> None:
        if self._ended:
            return
        eligible = self._is_eligible()
        with self._session.lock:
            if eligible:
                self._campaign()
            else:
                self._later(self._session.timeout / 4)

    def _campaign(self) -> None:
        if self._ended or (self._steward is not None and not self._steward.admit(self)):
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

    def _return(self, leadership: Leadership) -> None:
        with self._session.lock:
            self._candidacy.returned(leadership)
            if self._steward is not None:
                self._steward.vacate(self)

    def _hold(self, answer: Any) -> None:
        children = () if isinstance(answer, Failure) else answer
        others = bool(self._dialect.read(children).entries)
        self._later(self._hold_down.wait(random.random(), others=others))

    def _later(self, delay: float) -> None:
        def call() -> None:
            self._timer = None
            self._stand_soon()

        if not self._ended:
            self._timer = self._session.call_at(self._session.now() + delay, call)
