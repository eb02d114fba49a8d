"""What a relay has seen: frames noted and counted, and who waits for them."""

from __future__ import annotations

import collections
import threading
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.testing.conversation import REPLIES, REQUESTS, Direction

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Frame", "Journal"]

_LENGTH: Final = 100_000


@attrs.frozen(kw_only=True)
class Frame:
    """One ZooKeeper frame that came to a forwarder or a fault proxy.

    :ivar direction: ``requests`` or ``replies``.
    :ivar name: ZooKeeper's name of the request, also on its reply; ``connect``; ``event``.
    :ivar xid: number of the request; None for ``connect`` and four-letter words.
    :ivar at: when its last byte came, on the boot clock, in seconds.
    :ivar passed: False when it was swallowed.
    :ivar paths: of a fault proxy only: what it is about, a multi's paths in order.
    :ivar error: of a fault proxy only: the code in a reply as it was passed on, 0 for none.
    :ivar fault: of a fault proxy only: what was done to it, empty when nothing was.
    """

    direction: Direction
    name: str
    xid: int | None
    at: float
    passed: bool
    paths: tuple[str, ...] = ()
    error: int = 0
    fault: str = ""


class Journal:
    """Frames in the order in which they came.

    :ivar changed: is notified of each; its lock guards everything here.
    """

    def __init__(self, told: Callable[[Frame], None] | None = None) -> None:
        """Begin empty; ``told`` is called with each frame, under the lock."""
        self.changed: Final = threading.Condition()
        self._told = told
        self._frames = collections.deque[Frame](maxlen=_LENGTH)
        self._passed: dict[Direction, collections.Counter[str]] = {
            REQUESTS: collections.Counter(),
            REPLIES: collections.Counter(),
        }

    def note(self, frame: Frame) -> None:
        """Keep a frame, count it if it passed, and tell who waits."""
        with self.changed:
            self._frames.append(frame)
            self._passed[frame.direction][frame.name] += frame.passed
            if self._told is not None:
                self._told(frame)
            self.changed.notify_all()

    def passed(self, direction: Direction) -> collections.Counter[str]:
        """Return how many frames have passed, by name."""
        with self.changed:
            return self._passed[direction].copy()

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The last 100,000 frames."""
        with self.changed:
            return tuple(self._frames)

    def wait_for(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition holds, asking again after each frame."""
        with self.changed:
            return self.changed.wait_for(condition, timeout)
