"""When to stand again after a term: hold-down and back-off.

Hold-down keeps a candidate from leading again while somebody else can: it re-joins
behind at once when others stand, and after a short jittered wait when nobody does.
Back-off applies to the candidate that keeps failing, and only while others stand.
"""

from __future__ import annotations

from typing import Final

import attrs

__all__ = ["FIRST_BACKOFF", "LONGEST_BACKOFF", "HoldDown", "ceiling"]

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 60.0
_INVOLUNTARY_LIMIT: Final = 3
_WINDOW: Final = 10  # session timeouts


@attrs.define
class HoldDown:
    """The memory of one candidate's ends.

    :param timeout: the session timeout, seconds; the windows are measured in it.
    """

    timeout: float
    _ends: tuple[float, ...] = ()
    _failures: int = 0

    def end(self, at: float, *, involuntary: bool, unprepared: bool = False) -> None:
        """Note the end of a term.

        :param at: instant of the end, seconds on a monotonic clock.
        :param involuntary: the leader did not resign by itself.
        :param unprepared: its ``prepare`` failed, so it never served.
        """
        recent = tuple(end for end in self._ends if at - end <= _WINDOW * self.timeout)
        self._ends = (*recent, at)[-_INVOLUNTARY_LIMIT:] if involuntary else recent
        flapping = involuntary and len(self._ends) >= _INVOLUNTARY_LIMIT
        self._failures = self._failures + 1 if unprepared or flapping else 0

    def wait(self, jitter: float, *, others: bool) -> float:
        """Return how long to wait before standing again, seconds.

        :param jitter: chance from 0 to 1, drawn by the caller.
        :param others: whether somebody else stands now.
        """
        if not others:
            return jitter * self.timeout / 4
        return jitter * self._ceiling()

    def _ceiling(self) -> float:
        return ceiling(self._failures) if self._failures else 0.0


def ceiling(failures: int) -> float:
    """Return the longest wait after so many failures in a row, seconds; at least one.

    Full jitter below a doubling ceiling, so that failing candidates spread.
    """
    doublings = min(failures - 1, 63)  # a float overflows at 1024 of them
    return min(FIRST_BACKOFF * 2.0**doublings, LONGEST_BACKOFF)
