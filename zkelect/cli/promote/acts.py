"""``zkelect promote switchover``, ``pause`` and ``resume``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zkelect.cli.accompanying import accompany
from zkelect.cli.accounting import accounted
from zkelect.cli.connection import reaching
from zkelect.cli.consent import ask_consent, consenting
from zkelect.cli.durations import timed
from zkelect.cli.escaping import printable
from zkelect.cli.formats import formatted
from zkelect.cli.outcomes import pause_fields, write_outcome
from zkelect.cli.promote.membership import cluster
from zkelect.cli.promote.progress import describe_phase
from zkelect.recipes.board import Board
from zkelect.recipes.operating import Promotion

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import zkelect
    from zkelect.cli.connection import Target
    from zkelect.cli.formats import Format

__all__ = ["pause", "resume", "switchover"]


@click.command(short_help="Have another server be the primary, in good order.")
@cluster
@click.option("--to", metavar="NAME", help="The member.  [default: the most caught up]")
@timed("--within", 60, "Time to wait for it; if nobody has taken it up, it is withdrawn then.")
@accounted
@consenting
@formatted
@reaching
def switchover(
    target: Target,
    path: str,
    to: str | None,
    within: float,
    reason: str,
    by: str | None,
    yes: bool,
    output: Format,
) -> None:
    """Have another server be the primary, in good order: no confirmed write is lost.

    It is called off, and the old primary opened again, if the new one lacks anything. Ctrl-C
    withdraws it if nobody has taken it up yet.
    """
    with target.session() as session:
        promotion = Promotion(session, path)
        old = _primary_of(promotion, path)
        question = f"{old} is primary; sessions that write to it end. Let {to or 'another'} be it?"
        ask_consent(printable(question), yes)

        def switch(stop: threading.Event) -> str:
            return promotion.switchover(to, timeout=within, why=reason, by=by, stop=stop)

        new = _accompanied(session, path, switch)
    sentence = f"{path}: {new} is primary, {old} was"
    write_outcome(output, sentence, {"path": path, "primary": new, "former": old})


@click.command(short_help="Let nobody become primary until 'resume'.")
@cluster
@accounted
@consenting
@formatted
@reaching
def pause(
    target: Target, path: str, reason: str, by: str | None, yes: bool, output: Format
) -> None:
    """Let nobody become primary until 'resume'; who is, stays, as long as its lease."""
    with target.session() as session:
        promotion = Promotion(session, path)
        primary = _primary_of(promotion, path)
        question = f"{primary} is primary and stays; if it fails, nobody follows. Pause {path}?"
        ask_consent(printable(question), yes)
        promotion.pause(reason, by=by)
        paused = promotion.status().paused
    fields = {"path": path, "paused": pause_fields(paused), "primary": primary}
    write_outcome(output, f"{path} is paused; {primary} is primary and stays", fields)


@click.command(short_help="Let servers be promoted again.")
@cluster
@accounted
@consenting
@formatted
@reaching
def resume(
    target: Target, path: str, reason: str, by: str | None, yes: bool, output: Format
) -> None:
    """Let servers be promoted again, whoever paused it."""
    with target.session() as session:
        promotion = Promotion(session, path)
        _primary_of(promotion, path)
        present, over = promotion.status().paused, None
        if present is not None:
            ask_consent(printable(f"{path} is {present}. Resume it?"), yes)
            over = promotion.resume(reason, by=by)
    end = "was not paused" if over is None else f"is resumed; it was {over}"
    write_outcome(output, f"{path} {end}", {"path": path, "resumed": pause_fields(over)})


def _primary_of(promotion: Promotion, path: str) -> str:
    """Return who is primary or was last.

    :raises click.ClickException: nobody has ever been.
    """
    primary = promotion.status().primary
    if primary is None:
        raise click.ClickException(
            f"{path}: there has never been a primary; look at the path, at the chroot of the "
            "hosts, and whether agents run ('zkelect promote status')"
        )
    return primary


def _accompanied(
    session: zkelect.Session, path: str, switch: Callable[[threading.Event], str]
) -> str:
    """Switch over, and say at each change how far it is."""
    board = Board(session, path)
    with board.pages() as pages:
        return accompany(
            switch,
            lambda: describe_phase(board.page_of(pages.znode)),
            lambda new: f"{new} is primary",
        )
