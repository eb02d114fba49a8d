"""What a candidate under test is told, and whether its lease keeps its word."""

from __future__ import annotations

import math
import threading
from contextlib import suppress

import attrs
from election.waiting import WITHIN, boottime

import zkelect

__all__ = ["Diary", "Note", "Sentry"]


@attrs.frozen
class Note:
    """One callback: what, when, of which term, and why that one has ended."""

    what: str
    at: float
    leadership: zkelect.Leadership
    reason: str | None


class Diary:
    """Callbacks that note what they are told."""

    def __init__(self) -> None:
        self._written = threading.Condition()
        self._notes: list[Note] = []

    def elected(self, leadership: zkelect.Leadership) -> None:
        self._write("elected", leadership, boottime())

    def suspended(self, leadership: zkelect.Leadership) -> None:
        self._write("suspended", leadership, boottime())

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self._write("deposed", leadership, boottime())

    def granted(self, leadership: zkelect.Leadership) -> None:
        """Note the very instant at which the term began: it is the last progress made."""
        self._write("granted", leadership, leadership.progressed)

    def all(self, what: str) -> list[Note]:
        with self._written:
            return [note for note in self._notes if note.what == what]

    def wait(self, what: str, count: int = 1) -> Note:
        """Wait until something was noted that often; return the last of these notes."""
        with self._written:
            self._written.wait_for(lambda: len(self.all(what)) >= count, WITHIN)
            assert len(self.all(what)) >= count, f"{what} was not told: {self._notes}"
            return self.all(what)[count - 1]

    def assert_paired(self) -> None:
        """Each term was told as elected and then as deposed, each exactly once."""
        told = [note for note in self._notes if note.what in ("elected", "deposed")]
        assert [note.what for note in told] == ["elected", "deposed"] * (len(told) // 2)
        terms = [elected.leadership for elected in told[::2]]
        assert [deposed.leadership for deposed in told[1::2]] == terms
        assert len({term.token for term in terms}) == len(terms)

    def _write(self, what: str, leadership: zkelect.Leadership, at: float) -> None:
        with self._written:
            self._notes.append(Note(what, at, leadership, leadership.reason))
            self._written.notify_all()


class Sentry:
    """Looks at one leadership all the time, on a thread, until it is over.

    :ivar passed: the last instant at which a check is known to have passed.
    :ivar deadline: the latest deadline seen; it may not be passed by a check.
    """

    def __init__(self, leadership: zkelect.Leadership) -> None:
        self.leadership = leadership
        self.passed = self.deadline = -math.inf
        self._looked = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        assert self._looked.wait(WITHIN)

    def relieve(self) -> None:
        """Wait until the leadership is over."""
        self._thread.join(WITHIN)
        assert not self._thread.is_alive(), f"{self.leadership} does not end"

    def _look(self) -> None:
        over = False
        while not over:
            began = boottime()
            self.deadline = max(self.deadline, self.leadership.deadline)
            with suppress(zkelect.Lost):
                self.leadership.check()
                self.passed = began
            self._looked.set()
            over = self.leadership.wait_lost(0.002)
