"""One election shown: as a page, page by page, in place, or as facts for a program."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs
import click

from zkelect.cli.drawing import Line, Page, block, paint, print_lines
from zkelect.cli.formats import Format, write_json, write_rows
from zkelect.cli.looking.facts import columns_of, overview_facts
from zkelect.cli.looking.sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.live import Live

    from zkelect.cli.looking.reading import Reading
    from zkelect.session.overview import Overview

__all__ = ["Facts", "InPlace", "Pages", "View"]

_SCREENFUL: Final = 500
"""Candidates that are read at a time while somebody pages: some screens, a tenth of a second."""

_TITLES: Final = 5
"""Lines that are neither head nor queue: an empty one, titles, a rule, the rest, the prompt."""

_FEWEST: Final = 3


class View(Protocol):
    """A way to show an election."""

    def show(self, reading: Reading) -> None:
        """Read as much of it as is shown, and show it."""


@attrs.frozen(kw_only=True)
class Facts:
    """For programs: one line of JSON for all of it, or a line for each candidate.

    :ivar limit: of the candidates that are read and shown; None: all.
    """

    output: Format
    limit: int | None
    show_session_id: bool

    def show(self, reading: Reading) -> None:
        """Read and write it."""
        overview = reading.overview()
        reading.read(overview.roll.entries[: self.limit])
        facts: dict[str, Any] = overview_facts(
            overview, reading.standings, show_session_id=self.show_session_id
        )
        facts["queue"] = facts["queue"][: self.limit]
        if self.output is Format.JSON:
            write_json(facts)
        else:
            write_rows(map(columns_of, facts["queue"]))


@attrs.frozen(kw_only=True)
class Pages:
    """For people: all of it at once; on a terminal with too few lines, page by page.

    While one pages, candidates are read as far as one has come.
    """

    console: Console
    limit: int | None
    show_session_id: bool

    def show(self, reading: Reading) -> None:
        """Read and show it; return when it was read."""
        overview = reading.overview()
        count = len(overview.roll.entries[: self.limit])
        if self.console.is_terminal and count > self.room(reading, overview):
            pieces = self._pieces(reading, overview, count)
            click.echo_via_pager(paint(self.console, piece) for piece in pieces)
        else:
            print_lines(self.console, self.draw(reading, overview, count))

    def room(self, reading: Reading, overview: Overview) -> int:
        """Return for how many candidates there are lines, below the head and above the prompt."""
        return self.console.height - len(self._sheet(reading, overview).head()) - _TITLES

    def draw(self, reading: Reading, overview: Overview, count: int) -> list[Line]:
        """Return the whole drawing, with so many of the candidates."""
        pieces = self._pieces(reading, overview, count, max(count, 1))
        return [line for piece in pieces for line in piece]

    def _pieces(
        self, reading: Reading, overview: Overview, count: int, step: int = _SCREENFUL
    ) -> Iterator[list[Line]]:
        """Give the head, then so many candidates at a time; each is read when it is needed."""
        first = min(step, count)
        reading.read(overview.roll.entries[:first])
        sheet = self._sheet(reading, overview)
        table = sheet.table(first)
        yield [*sheet.head(), *(sheet.titles(table) if count else ())]
        yield [*sheet.rows(table, 0, first)]
        for start in range(first, count, step):
            end = min(start + step, count)
            reading.read(overview.roll.entries[start:end])
            yield [*sheet.judged(end).rows(table, start, end)]
        hidden = len(overview.roll.entries) - count
        if hidden:
            yield [Line(f"  and {hidden} more", "dim")]

    def _sheet(self, reading: Reading, overview: Overview) -> Sheet:
        return Sheet.of(
            Page.of(self.console),
            overview,
            reading.standings,
            time.time(),
            show_session_id=self.show_session_id,
        )


@attrs.frozen(kw_only=True)
class InPlace:
    """For people who go on looking: drawn over the last drawing, as far as there is room.

    Where it is no terminal, one drawing comes below the other.
    """

    pages: Pages
    live: Live | None

    def show(self, reading: Reading) -> None:
        """Read as many candidates as there is room for, and draw them."""
        overview = reading.overview()
        count = len(overview.roll.entries[: self.pages.limit])
        console = self.pages.console
        if self.live is None:
            print_lines(console, [*self.pages.draw(reading, overview, count), Line("")])
        else:
            count = min(count, max(self.pages.room(reading, overview), _FEWEST))
            lines = self.pages.draw(reading, overview, count)
            self.live.update(block(lines, console.height - 1), refresh=True)
