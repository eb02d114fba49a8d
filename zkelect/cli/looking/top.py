"""The command ``zkelect top``: many elections on one screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click
from rich.live import Live

from zkelect.cli.connection import Target, reaching
from zkelect.cli.drawing import Column, Line, Page, Table, block, duration, instant, new_console
from zkelect.cli.durations import Seconds
from zkelect.cli.looking.following import Following, Sight
from zkelect.cli.signals import Interruption
from zkelect.errors import ConnectFailed
from zkelect.session.catalog import check_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

__all__ = ["board", "top"]

_DEPTH: Final = 4
_FIND: Final = 30.0
"""Seconds between two looks for elections that have come or gone."""

_CALM: Final = 0.2
"""Seconds between two drawings at least: leaders may change in a storm, readers cannot."""

_TITLES: Final = 5
_COLUMNS: Final = (
    Column(title="election", flexible=True),
    Column(title="leader", flexible=True),
    Column(title="for", right=True),
    Column(title="candidates", right=True),
    Column(title="changed", right=True),
    Column(title="remarks", flexible=True),
)


@click.command()
@click.argument("root", default="/")
@click.option(
    "-w",
    "--watch",
    "every",
    type=Seconds(min=_CALM),
    default=2,
    show_default=True,
    metavar="SEC",
    help="Count the candidates of what is shown every SEC seconds.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=_DEPTH,
    show_default=True,
    metavar="N",
    help="Levels of znodes whose children are looked at, ROOT's own included.",
)
@reaching
def top(target: Target, root: str, every: float, depth: int) -> None:
    """Follow many elections on one screen, those without a leader first.

    ROOT is a znode, / by default. Changes of leader are shown at once, since ZooKeeper tells
    them; candidates are counted every SEC seconds, of the elections that there is room for, two
    small requests each. New elections are looked for every 30 seconds. Ctrl-C ends it.
    """
    console = new_console()
    if not console.is_interactive:
        raise click.UsageError(
            "top draws on a terminal, and this is none: use list, or watch for one election."
        )
    root = check_root(root)
    with Interruption() as interruption, target.session() as session:
        following = Following(session, root, depth, target.timeout)
        following.find()
        with Live(console=console, screen=True, auto_refresh=False) as live:
            _Screen(following, root, console, live).run(interruption, every)


class _Screen:
    """The screen, and when what is asked for again."""

    def __init__(self, following: Following, root: str, console: Console, live: Live) -> None:
        self._following = following
        self._root = root
        self._console = console
        self._live = live

    def run(self, interruption: Interruption, every: float) -> None:
        """Draw at each change, and ask every so many seconds, until a signal comes."""
        found = counted = time.monotonic()
        while True:
            self._draw()
            interruption.check()
            time.sleep(_CALM)
            self._following.wait(max(counted + every - time.monotonic(), 0.0))
            now = time.monotonic()
            if now >= counted + every:
                found = self._ask(now, found)
                counted = now

    def _ask(self, now: float, found: float) -> float:
        """Ask again, when there is anybody to ask; return when elections were looked for."""
        if not self._following.connected:
            return found
        try:
            if now < found + _FIND:
                self._following.count([sight.path for sight in self._shown()])
                return found
            self._following.find()
        except ConnectFailed:
            return found  # the title says it
        return now

    def _shown(self) -> list[Sight]:
        return self._following.sights[: self._room]

    @property
    def _room(self) -> int:
        return max(self._console.height - _TITLES, 1)

    def _draw(self) -> None:
        sights = self._following.sights
        where = f"below {self._root}"
        if not self._following.connected:
            where = "NO CONNECTION: this is how it was"
        lines = board(Page.of(self._console), where, sights, self._room, time.time())
        self._live.update(block(lines, self._console.height), refresh=True)


def board(page: Page, where: str, sights: Sequence[Sight], room: int, now: float) -> list[Line]:
    """Return the screen: a title, the elections there is room for, and how many more there are.

    :param where: what the title ends with. :param now: wall clock, seconds since 1970.
    """
    vacant = sum(sight.vacant for sight in sights)
    without = f", {vacant} without a leader" if vacant else ""
    plural = "" if len(sights) == 1 else "s"
    title = f"{instant(now)} UTC  {len(sights)} election{plural}{without}  {where}"
    lines = [Line(page.cut(title, page.width), "bold"), Line("")]
    rows = [_cells(page, sight, now) for sight in sights[:room]]
    table = Table(page, _COLUMNS, rows)
    lines += table.head()
    lines += (table.line(row, _style(sight)) for row, sight in zip(rows, sights, strict=False))
    if len(sights) > room:
        lines.append(Line(f"and {len(sights) - room} more", "dim"))
    return lines


def _cells(page: Page, sight: Sight, now: float) -> list[str]:
    return [
        page.brief(sight.path),
        "nobody" if sight.leader is None else page.brief(sight.leader) or "(no name)",
        page.dash if sight.since is None else duration(now - sight.since),
        "?" if sight.candidates is None else str(sight.candidates),
        page.dash if sight.changed is None else f"{duration(now - sight.changed)} ago",
        ", ".join(_remarks(page, sight)),
    ]


def _remarks(page: Page, sight: Sight) -> Iterator[str]:
    if sight.error is not None:
        yield page.brief(sight.error)
    if sight.paused is not None:
        yield f"paused by {page.brief(sight.paused.by)}"
    if sight.phase == "preparing":
        yield "preparing"
    if sight.foreign:
        yield "foreign"


def _style(sight: Sight) -> str:
    if sight.error is not None or sight.vacant:
        return "bold red"
    return "yellow" if sight.paused is not None or sight.foreign else ""
