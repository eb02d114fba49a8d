"""What happened, as JSON lines: a file for each process, a single write for each line.

Instants are seconds of the boot clock, which all processes of a machine share. A line is
handed to the kernel before anything follows from it, so a killed process leaves all that it
has done but the last line, which may be torn.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import attrs

from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Event", "History", "Writer", "boottime", "read"]

boottime: Final = SystemClock().boottime
_SUFFIX: Final = ".jsonl"


@attrs.frozen
class Event:
    """One line, or what else is put into the same order: rows of a store, transactions.

    :ivar at: boot-clock instant. :ivar by: which process, store or ensemble tells it.
    :ivar kind: a past participle: ``granted``, ``asked``, ``answered``, ``healed``, …
    """

    at: float
    by: str
    kind: str
    fields: dict[str, Any] = attrs.field(factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def get(self, name: str) -> Any:
        """Return a field, None when the event has none of this name."""
        return self.fields.get(name)

    def __str__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.fields.items())
        return f"{self.at:.3f} {self.by} {self.kind} {words}".rstrip()


@attrs.frozen
class History:
    """All events in the order of their instants, and what is wrong with the record itself."""

    events: tuple[Event, ...]
    defects: tuple[str, ...] = ()


class Writer:
    """Writes one process's file. Takes no lock, so a fork of the process can use it too."""

    def __init__(self, directory: Path, process: str) -> None:
        self._by = process
        path = directory / f"{process}{_SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, kind: str, *, at: float | None = None, **fields: Any) -> float:
        """Write one line and return its instant; fields that are None are left out."""
        instant = boottime() if at is None else at
        told = {name: value for name, value in fields.items() if value is not None}
        line = json.dumps({"at": instant, "by": self._by, "event": kind, **told})
        os.write(self._file, f"{line}\n".encode())
        return instant


def read(directory: Path) -> History:
    """Read the files of all processes; a line that cannot be read is a defect, not a guess."""
    events: list[Event] = []
    defects: list[str] = []
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        for number, line in enumerate(lines := path.read_text("utf-8").split("\n"), start=1):
            try:
                events.extend(_events(line))
            except (ValueError, KeyError, TypeError):
                if number != len(lines):  # without its line end: torn by a kill
                    defects.append(f"{path.name}:{number} cannot be read")
    events.sort(key=lambda event: event.at)
    return History(tuple(events), tuple(defects))


def _events(line: str) -> Iterator[Event]:
    if line:
        fields = json.loads(line)
        yield Event(float(fields.pop("at")), fields.pop("by"), fields.pop("event"), fields)
