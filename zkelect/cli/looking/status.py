"""The command ``zkelect status``: one election, now or again and again."""

from __future__ import annotations

import time
from contextlib import ExitStack

import click
from rich.console import Console
from rich.live import Live

from zkelect.cli.connection import Target, reaching
from zkelect.cli.drawing import new_console
from zkelect.cli.durations import Seconds
from zkelect.cli.failures import tell
from zkelect.cli.formats import Format, formatted
from zkelect.cli.looking.reading import Reading
from zkelect.cli.looking.views import Facts, InPlace, Pages, View
from zkelect.cli.signals import Interruption
from zkelect.core.paths import normalize
from zkelect.errors import ConnectFailed

__all__ = ["status"]


@click.command()
@click.argument("path")
@formatted
@click.option(
    "-w",
    "--watch",
    "every",
    type=Seconds(min=0.1),
    metavar="SEC",
    help="Again every SEC seconds, on a terminal in place, until Ctrl-C.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Show the first N candidates only, and read no others.",
)
@click.option(
    "--show-session-id",
    is_flag=True,
    help="Show whose session each candidate is. Whoever knows a session id can close the session.",
)
@reaching
def status(
    target: Target,
    path: str,
    output: Format,
    every: float | None,
    limit: int | None,
    show_session_id: bool,
) -> None:
    """Show one election: who leads, who waits for whom, and what is odd.

    It shows what is written in ZooKeeper. A leader whose lease has run out while its link is
    down has stopped by itself, and is shown until its session has ended.

    On a terminal a queue longer than the screen is paged; candidates are read as you go.

    \b
    -o tsv: one line for each candidate:
      place role name node number behind dialect foreign priority since orphan
      and the session, when it is asked for
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    path = normalize(path)
    facts = Facts(output=output, limit=limit, show_session_id=show_session_id)
    pages = Pages(console=new_console(), limit=limit, show_session_id=show_session_id)
    with target.session() as session:
        reading = Reading(session, path, target.timeout)
        if every is not None:
            _repeat(facts, pages, reading, every)
        elif output is Format.TABLE:
            pages.show(reading)
        else:
            facts.show(reading)


def _repeat(facts: Facts, pages: Pages, reading: Reading, every: float) -> None:
    """Show it until a signal comes; while ZooKeeper does not answer, say so and go on."""
    with Interruption() as interruption, ExitStack() as stack:
        view: View = facts
        if facts.output is Format.TABLE:
            view = InPlace(pages=pages, live=_place(pages.console, stack))
        while True:
            try:
                view.show(reading)
            except ConnectFailed as failure:
                tell(str(failure))
            interruption.check()
            time.sleep(every)


def _place(console: Console, stack: ExitStack) -> Live | None:
    """Return where to draw over the last drawing; None where it is no terminal."""
    if not console.is_interactive:
        return None
    return stack.enter_context(Live(console=console, auto_refresh=False))
