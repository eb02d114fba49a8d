"""The line below the timeline: who leads at this moment, and how much of its lease is left."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from zkelect.cli.demo.event import Event
from zkelect.cli.demo.sentences import shorten
from zkelect.session.clock import SystemClock

__all__ = ["Board"]

_PER_SECOND: Final = 10
_LONGEST: Final = 20

_now: Final = SystemClock().boottime


class Board:
    """Follows the events; rich asks it how to draw itself, several times a second."""

    def __init__(self) -> None:
        self._leader: Event | None = None
        self._row = 0
        self._deadline = 0.0
        self._frozen = False

    def follow(self, event: Event) -> None:
        """Take in what an event changes."""
        match event.kind:
            case "elected":
                self._leader, self._frozen, self._deadline = event, False, event.deadline
            case "committed":
                self._row, self._deadline = event["row"], event.deadline
            case "frozen":
                self._frozen = True
            case "resigned" | "killed" | "lapsed" | "lost" if self._is_over(event):
                self._leader = None

    def __rich__(self) -> Text:
        """Draw one line that is cut rather than wrapped."""
        return Text(self.draw(_now()), style="reverse", no_wrap=True, overflow="crop")

    def draw(self, now: float) -> str:
        """Return the line as it is at an instant."""
        if self._leader is None:
            return f" nobody leads  row {self._row} "
        left = max(self._deadline - now, 0.0)
        bar = "#" * min(round(left * _PER_SECOND), _LONGEST)
        state = "is frozen" if self._frozen else "leads"
        token = shorten(self._leader["token"])
        return (
            f" {self._leader.name} {state}  token {token}  row {self._row}  "
            f"lease {left:.1f} s {bar:<{_LONGEST}}"
        )

    def _is_over(self, event: Event) -> bool:
        """Whether this is the end of the present leader, not of one before it."""
        return self._leader is not None and event["token"] == self._leader["token"]
