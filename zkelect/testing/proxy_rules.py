"""Which frame a fault is for: by name, path and count, never by time."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.errors import InvalidArgument, Misuse
from zkelect.testing.jute import paths_in
from zkelect.testing.tap import Gate

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from zkelect.testing.conversation import Direction, Message
    from zkelect.testing.proxy_faults import Fault

__all__ = ["Pattern", "Rule"]

def _anything(_: Message) -> bool:
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
    also: Callable[[Message], bool] = _anything

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
        *,
        nth: int = 1,
        times: int | None = 1,
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
        self.matches = 0
        self.firings = 0
        self.cancelled = False

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
        """
        with self._changed:
            return self._changed.wait_for(lambda: self.firings >= count, timeout)

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

    @property
    def gate(self) -> Gate:
        """What a delayed frame waits for."""
        return self._gate

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
