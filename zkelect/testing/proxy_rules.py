"""Which frame a fault is for: by name, path and count, never by time."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypedDict

import attrs

from zkelect.errors import InvalidArgument, Misuse
from zkelect.testing.jute import paths_in
from zkelect.testing.tap import Act, End, Gate

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from zkelect.testing.conversation import Direction, Message
    from zkelect.testing.proxy_faults import Fault

__all__ = ["Count", "Pattern", "Rule", "When", "anything"]


class Count(TypedDict, total=False):
    """At which of the frames that fit a rule fires.

    :param nth: the first one, from 1. :param times: at how many in a row; None: for ever.
    """

    nth: int
    times: int | None


class When(Count, total=False):
    """The same, and which frames fit.

    :param path: a shell pattern for one of the frame's paths.
    """

    path: str | None


def anything(_: Message) -> bool:
    """Fit every frame."""
    return True


@attrs.frozen(kw_only=True)
class Pattern:
    """What frames look like that a rule is for.

    :param path: a shell pattern, as in ``fnmatch``, of which ``*`` crosses slashes; of a
        multi one path must fit. None fits every frame, also those without a path.
    """

    direction: Direction
    names: frozenset[str]
    path: str | None = None
    also: Callable[[Message], bool] = anything

    def fits(self, message: Message) -> bool:
        """Tell whether a frame is meant."""
        if message.direction != self.direction or message.name not in self.names:
            return False
        if self.path is not None and not self._fits_path(message, self.path):
            return False
        return self.also(message)

    def _fits_path(self, message: Message, path: str) -> bool:
        return any(fnmatchcase(each, path) for each in paths_in(message))


class Rule:
    """One fault, waiting for its frame. Made by the methods of a fault proxy.

    :ivar matches: how many frames have fitted. :ivar firings: how often it has fired.
    """

    def __init__(
        self,
        label: str,
        pattern: Pattern,
        fault: Fault,
        nth: int,
        times: int | None,
        changed: threading.Condition,
        resume: Callable[[], None],
    ) -> None:
        """Wait for the ``nth`` frame; then ``times`` frames in a row, None for all."""
        if nth < 1:
            raise InvalidArgument("nth", nth, "a number from 1; the first match is number 1")
        if times is not None and times < 1:
            raise InvalidArgument("times", times, "a number from 1, or None for every time")
        self._label = label
        self._pattern = pattern
        self.fault: Final = fault
        self._nth, self._times = nth, times
        self._changed, self._resume = changed, resume
        self._gate = Gate()
        self.matches: int = 0
        self.firings: int = 0
        self.cancelled: bool = False
        self._error: Exception | None = None

    def __repr__(self) -> str:
        return f"<Rule {self} matches={self.matches} firings={self.firings}>"

    def __str__(self) -> str:
        """Say it as it was made."""
        nth = f" nth={self._nth}" if self._nth > 1 else ""
        times = "" if self._times == 1 else f" times={self._times or 'all'}"
        return f"{self._label}{nth}{times}"

    # --- what tests ask ---------------------------------------------------------------------

    @property
    def fired(self) -> bool:
        """Whether it has fired at least once."""
        return self.firings > 0

    def wait(self, timeout: float = 10.0, *, count: int = 1) -> bool:
        """Wait until it has fired.

        :param timeout: seconds, above 0. :param count: so many times.
        :returns: whether it has.
        :raises Misuse: what it was to do cannot be done to the frame it was for.
        """
        with self._changed:
            fired = self._changed.wait_for(lambda: self.firings >= count, timeout)
        if self._error is not None:
            raise Misuse(f"{self} failed, and ended the connection") from self._error
        return fired

    def cancel(self) -> None:
        """Fire no more; what it holds is still held."""
        with self._changed:
            self.cancelled = True

    def release(self) -> None:
        """Let go what a delay holds, with all that came behind it, and delay no more.

        :raises Misuse: it has held nothing yet.
        """
        with self._changed:
            if not self.fired:
                raise Misuse(f"{self} has delayed nothing yet; wait() for it, or cancel() it")
            self.cancelled = True
            self._gate.open = True
        self._resume()

    # --- what the proxy asks, under the lock ---------------------------------------------------

    def claims(self, message: Message, *, free: bool) -> bool:
        """Count a frame that fits, and tell whether to fire at it.

        :param free: no rule made earlier has fired at it; otherwise this one is due still.
        """
        if self.cancelled or not self._pattern.fits(message):
            return False
        self.matches += 1
        spent = self._times is not None and self.firings >= self._times
        if not free or spent or self.matches < self._nth:
            return False
        self.firings += 1
        return True

    def act(self, message: Message) -> tuple[Act, ...]:
        """Return what to do in the place of a frame that it has claimed."""
        try:
            return self.fault.act(message, self._gate)
        except Exception as error:  # noqa: BLE001  # of a user's rewrite; wait() raises it
            self._error = error
            return (End(message.direction),)
