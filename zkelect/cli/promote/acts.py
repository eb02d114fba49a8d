"""``zkelect promote switchover``, ``pause`` and ``resume``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zkelect.cli.accounting import accounted
from zkelect.cli.connection import reaching
from zkelect.cli.consent import ask_consent, consenting
from zkelect.cli.durations import timed
from zkelect.cli.escaping import printable
from zkelect.recipes.operating import Promotion

if TYPE_CHECKING:
    from zkelect.cli.connection import Target

__all__ = ["pause", "resume", "switchover"]


@click.command()
@click.argument("path")
@click.option("--to", metavar="NAME", help="The member.  [default: the most caught up]")
@timed("--within", 60, "Time to wait for it.")
@accounted
@consenting
@reaching
def switchover(
    target: Target,
    path: str,
    to: str | None,
    within: float,
    reason: str,
    by: str | None,
    yes: bool,
) -> None:
    """Have another server be the primary, in good order: no confirmed write is lost.

    It is called off, and the old primary opened again, if the new one lacks anything.
    """
    with target.session() as session:
        promotion = Promotion(session, path)
        old = promotion.status().primary
        question = f"{old} is primary; sessions that write to it end. Let {to or 'another'} be it?"
        ask_consent(printable(question), yes)
        new = promotion.switchover(to, timeout=within, why=reason, by=by)
    click.echo(printable(f"{path}: {new} is primary, {old} was"))


@click.command()
@click.argument("path")
@accounted
@consenting
@reaching
def pause(target: Target, path: str, reason: str, by: str | None, yes: bool) -> None:
    """Let nobody become primary until 'resume'; who is, stays, as long as its lease."""
    with target.session() as session:
        promotion = Promotion(session, path)
        ask_consent(printable(f"If the primary of {path} fails, nobody follows. Pause it?"), yes)
        promotion.pause(reason, by=by)
    click.echo(printable(f"{path} is paused"))


@click.command()
@click.argument("path")
@consenting
@reaching
def resume(target: Target, path: str, yes: bool) -> None:
    """Let servers be promoted again, whoever paused it."""
    with target.session() as session:
        promotion = Promotion(session, path)
        ask_consent(printable(f"Resume {path}?"), yes)
        over = promotion.resume()
    click.echo(printable(f"{path} was not paused" if over is None else f"{path} is resumed"))
