"""Tables for people: as wide as there is room, in letters that the terminal has.

Not rich's own tables: these are drawn a page at a time, while the rest is still being read,
and ten thousand rows of them take a tenth of a second instead of four.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import attrs
import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.text import Text

from zkelect.cli.escaping import printable

__all__ = [
    "Column",
    "Line",
    "Page",
    "Table",
    "block",
    "duration",
    "instant",
    "new_console",
    "paint",
    "print_lines",
]

_UNWRAPPED: Final = 1000
"""Columns of a file or pipe: whoever reads it can wrap lines, and nobody can join them."""

_NARROWEST: Final = 6
_GAP: Final = 2
_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def new_console() -> Console:
    """Return standard output; it heeds NO_COLOR, TERM, COLUMNS and what the terminal is."""
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = _UNWRAPPED
    return console


@attrs.frozen
class Line:
    """One line, and the rich style of all of it."""

    text: str
    style: str = ""


@attrs.frozen(kw_only=True)
class Page:
    """What is drawn on.

    :ivar width: in cells. :ivar encoding: of what is written: letters it does not have are
        shown as escapes. :ivar longest: cells of any one text; more of it is not shown.
    """

    width: int = 80
    encoding: str = "utf-8"
    longest: int = 60

    @classmethod
    def of(cls, console: Console) -> Page:
        """Return the page that this console is."""
        return cls(width=console.width, encoding=console.encoding)

    @property
    def ellipsis(self) -> str:
        """What stands for the rest of a text."""
        return "…" if self._has("…") else "..."

    @property
    def dash(self) -> str:
        """What a rule is made of."""
        return "─" if self._has("─") else "-"

    def brief(self, text: str, cells: int | None = None) -> str:
        """Return text from elsewhere so that it can be shown in one line, and cut if need be.

        :param cells: at most so many; :attr:`longest` when None.
        """
        room = self.longest if cells is None else cells
        shown = self._spell(printable(text[: self.longest + 1]))
        if len(text) <= self.longest and cell_len(shown) <= room:
            return shown
        return self.cut(shown + self.ellipsis, room)

    def cut(self, text: str, cells: int) -> str:
        """Return the text, cut to so many cells; an ellipsis tells that it was longer."""
        if cell_len(text) <= cells:
            return text
        return set_cell_size(text, max(cells - len(self.ellipsis), 0)).rstrip() + self.ellipsis

    def _spell(self, text: str) -> str:
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def _has(self, letter: str) -> bool:
        return self._spell(letter) == letter


@attrs.frozen(kw_only=True)
class Column:
    """One column of a table.

    :ivar flexible: whether it is cut when there is too little room.
    :ivar right: whether it is set flush right.
    """

    title: str
    flexible: bool = False
    right: bool = False


class Table:
    """Rows under titles. How wide each column is, is settled by the first rows.

    :param rows: by which to settle it; draw them with :meth:`line`.
    """

    def __init__(
        self, page: Page, columns: Sequence[Column], rows: Iterable[Sequence[str]]
    ) -> None:
        self._page = page
        self._columns = columns
        self._widths = _settle(page.width, columns, [*rows])

    def head(self) -> list[Line]:
        """Return the titles and a rule."""
        rule = (" " * _GAP).join(self._page.dash * width for width in self._widths)
        return [self.line([column.title for column in self._columns], "bold"), Line(rule, "dim")]

    def line(self, cells: Sequence[str], style: str = "") -> Line:
        """Return one row."""
        fields = map(self._field, cells, self._columns, self._widths)
        return Line((" " * _GAP).join(fields).rstrip(), style)

    def _field(self, text: str, column: Column, width: int) -> str:
        text = self._page.cut(text, width) if column.flexible else text
        space = " " * (width - cell_len(text))
        return space + text if column.right else text + space


def _settle(room: int, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column is: as its widest text, the flexible ones less if need be."""
    widths = [
        max(map(cell_len, (column.title, *(row[place] for row in rows))))
        for place, column in enumerate(columns)
    ]
    flexible = [place for place, column in enumerate(columns) if column.flexible]
    excess = sum(widths) + _GAP * (len(widths) - 1) - room
    while excess > 0 and flexible:
        widest = max(flexible, key=lambda place: widths[place])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def print_lines(console: Console, lines: Iterable[Line]) -> None:
    """Write lines; none is ever wrapped."""
    if console.is_terminal:
        click.echo(paint(console, lines), nl=False, color=True)
    else:
        for line in lines:
            click.echo(line.text)


def paint(console: Console, lines: Iterable[Line]) -> str:
    """Return lines as they are written to this terminal, for a pager."""
    page = Page.of(console)
    return "".join(_paint(console, line.style, page.cut(line.text, page.width)) for line in lines)


def block(lines: Iterable[Line], height: int) -> Group:
    """Return as many lines as there is room for, to be drawn in place."""
    return Group(*map(_styled, [*lines][:height]))


def _paint(console: Console, style: str, text: str) -> str:
    before, after = _frame(console, style)
    return f"{before}{text}{after}"


@lru_cache
def _frame(console: Console, style: str) -> tuple[str, str]:
    """Return what rich puts around a text; to ask it for every line would take a second."""
    with console.capture() as capture:
        console.print(Text("|", style))
    before, _, after = capture.get().partition("|")
    return before, after


def _styled(line: Line) -> Text:
    return Text(line.text, line.style, no_wrap=True, overflow="crop")


def duration(seconds: float) -> str:
    """Say how long something lasts, in its two largest units."""
    if not math.isfinite(seconds):
        return "?"
    left = max(int(seconds), 0)
    parts: list[str] = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"


def instant(seconds: float) -> str:
    """Say a wall-clock instant in UTC; ``?`` when it is none."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "?"
