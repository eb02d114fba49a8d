"""The command in one term: started, kept alive by each renewal, dead before the term is left."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import attrs

from zkelect.cli.failures import tell
from zkelect.cli.run.deadline_file import DeadlineFile
from zkelect.cli.run.keeper.kernel import boottime
from zkelect.cli.run.keeper.messages import (
    Cause,
    Dead,
    End,
    Ending,
    Hold,
    Message,
    Pass,
    Refused,
    Start,
    Started,
)
from zkelect.cli.run.keeper.plan import KILLING
from zkelect.cli.run.keeping import KeeperLost, KeeperProcess
from zkelect.cli.run.program import not_started
from zkelect.cli.run.signal_watch import Caught
from zkelect.core.events import Reason
from zkelect.session.leadership import Leadership

__all__ = ["Outcome", "TermOfCommand"]

_BESIDE: Final = KILLING / 2
"""Seconds before the deadline at which we kill, too: the keeper has done it by then, if it can."""

_HUNG: Final = 1.0
"""Seconds that a keeper may take to tell that all are dead, once we look after the deadline."""

_AGAIN: Final = 0.02
"""Seconds between two looks at those who were killed."""

_AT_ONCE: Final = frozenset({Reason.LAPSED, Reason.MACHINE_SUSPENDED})
"""Ends after which no instant of grace is left: a successor may lead already, by right."""


@attrs.frozen(kw_only=True)
class Outcome:
    """How it ended.

    :ivar status: the command's own, 128 + n when signal n ended it; 128 + 9 where nobody could ask.
    :ivar lost: why the leadership is over; None: the command ended by itself while it led.
    """

    status: int
    lost: str | None


class TermOfCommand:
    """One run of the command under one leadership."""

    def __init__(
        self,
        leadership: Leadership,
        keeper: KeeperProcess,
        file: DeadlineFile,
        *,
        command: Sequence[str],
        grace: float,
        look_every: float,
    ) -> None:
        self._serving = False
        self._leadership: Final = leadership
        self._keeper: Final = keeper
        self._file: Final = file
        self._command: Final = command
        self._grace: Final = grace
        self._look_every: Final = look_every
        self._deadline = max(leadership.deadline, 0.0)  # it may be over by now
        self._ordered = False
        self._ending: Ending | None = None
        self._refused: int | None = None
        self._dead = self._complained = False
        self._late_since: float | None = None

    def follow(self) -> Outcome:
        """Run it to its end; when this returns or raises, nothing of it is alive.

        :raises NotStarted: it cannot be executed.
        :raises KeeperLost: the keeper has ended, or hangs; what it had started is dead.
        """
        try:
            self._start()
            while not self._dead:
                self._keeper.wake()
                self._listen()
                self._renew()
                self._enforce()
        finally:
            self._serving = False
            if not self._dead:
                self._keeper.take_over(self._complain)
            self._file.write(0.0)
        return self._outcome()

    @property
    def serving(self) -> bool:
        """Whether the command runs, and nothing has begun to end it; by the clock, too.

        The keeper ends it without asking us, and we may hear of it late.
        """
        return self._serving and boottime() < self._deadline - KILLING - self._grace

    def pass_on(self, caught: Caught) -> None:
        """Send a signal to all that came of the command, and have not heard it themselves."""
        with suppress(KeeperLost):  # who follows the term hears of it, too
            self._keeper.send(Pass(caught.signal, caught.typed))

    # --- within ------------------------------------------------------------------------------

    def _start(self) -> None:
        self._file.write(self._deadline)
        self._keeper.send(Start(self._environment(), self._deadline, self._grace))

    def _environment(self) -> dict[str, str]:
        leadership = self._leadership
        return {
            "ZKELECT_TOKEN": str(leadership.token),
            "ZKELECT_PATH": leadership.path,
            "ZKELECT_NODE": leadership.node,
            "ZKELECT_NAME": leadership.name,
            "ZKELECT_DEADLINE_FILE": str(self._file.path),
        }

    def _patience(self) -> float:
        left = self._deadline - _BESIDE - boottime()
        return min(self._look_every, left) if left > 0 else _AGAIN

    def _listen(self) -> None:
        """Wait a little for news, then take all there is: we may have been stopped for long."""
        told = self._keeper.wait(self._patience())
        while told is not None:
            self._hear(told)
            told = None if self._dead else self._keeper.wait(0.0)

    def _hear(self, told: Message) -> None:
        match told:
            case Started():
                self._serving = self._ending is None and not self._ordered
            case Refused(errno):
                self._refused = errno
            case Ending():
                self._serving = False
                self._ending = told
            case Dead():
                self._dead = True

    def _renew(self) -> None:
        """Pass on a longer lease, or that it is over."""
        if self._leadership.reason is not None:
            self._order_end(self._leadership.reason)
        elif self._ending is None and (deadline := self._leadership.deadline) > self._deadline:
            self._deadline = deadline
            self._keeper.send(Hold(deadline))
            self._file.write(deadline)

    def _order_end(self, reason: Reason) -> None:
        if not self._ordered:
            self._serving = False
            self._file.write(0.0)
            self._ordered = self._keeper.send(End(reason in _AT_ONCE))

    def _enforce(self) -> None:
        """Do the keeper's work when it is due: that may be stopped, or hang."""
        now = boottime()
        if self._dead or now < self._deadline - _BESIDE:
            return
        living = self._keeper.kill_tree()
        self._late_since = self._late_since or now
        if now > self._late_since + _HUNG:
            if not living:
                raise KeeperLost("the keeper hangs; the command is dead")
            self._complain(living)

    def _complain(self, living: Sequence[int]) -> None:
        if not self._complained:
            self._complained = True
            pids = ", ".join(map(str, living))
            tell(f"killed, and still alive: {pids}; stuck in the kernel, or another user's")

    def _outcome(self) -> Outcome:
        if self._refused is not None:
            raise not_started(self._command[0], self._refused)
        ending = self._ending or Ending(Cause.ORDERED)
        if ending.cause == Cause.LATE and self._leadership.reason is None:
            self._leadership.end(Reason.LAPSED)
        return Outcome(status=ending.status, lost=self._leadership.reason)

    def __str__(self) -> str:
        """The command, as it would be typed."""
        return shlex.join(self._command)
