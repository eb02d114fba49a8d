"""``zkelect pause`` and ``zkelect resume``: nobody new is elected in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import zkelect
from zkelect.cli.accounting import accounted
from zkelect.cli.connection import reaching
from zkelect.cli.consent import ask_consent, consenting
from zkelect.cli.escaping import printable
from zkelect.cli.formats import formatted
from zkelect.cli.outcomes import candidate_fields, pause_fields, write_outcome

if TYPE_CHECKING:
    from zkelect.cli.connection import Target
    from zkelect.cli.formats import Format

__all__ = ["pause", "resume"]


@click.command()
@click.argument("path")
@accounted
@consenting
@formatted
@reaching
def pause(
    target: Target, path: str, reason: str, by: str | None, yes: bool, output: Format
) -> None:
    """Let nobody new be elected; who leads, stays.

    The pause is written into the election's record: it holds for candidates that come later and
    outlives all restarts, until 'zkelect resume'.
    """
    with target.session() as session:
        election = zkelect.Election(session, path)
        leader = election.leader(target.timeout)
        stays = "Nobody leads" if leader is None else f"{leader.name} leads and stays"
        question = f"nobody new is elected until it is resumed. Pause {election.path}?"
        ask_consent(printable(f"{stays}; {question}"), yes)
        leader = election.pause(reason, by=by, timeout=target.timeout)
        paused = election.paused(target.timeout)
    stays = "nobody leads" if leader is None else f"{leader.name} leads and stays"
    fields = {"paused": pause_fields(paused), "leader": candidate_fields(leader)}
    write_outcome(output, f"{election.path} is paused; {stays}", fields)


@click.command()
@click.argument("path")
@accounted
@consenting
@formatted
@reaching
def resume(
    target: Target, path: str, reason: str, by: str | None, yes: bool, output: Format
) -> None:
    """Let leaders be elected again, whoever paused the election.

    If nobody leads, the first in the queue does at once.
    """
    with target.session() as session:
        election = zkelect.Election(session, path)
        present = election.paused(target.timeout)
        over = None
        if present is not None:
            ask_consent(printable(f"{election.path} is {present}. Resume it?"), yes)
            over = election.resume(reason, by=by, timeout=target.timeout)
    end = "was not paused" if over is None else f"is resumed; it was {over}"
    write_outcome(output, f"{election.path} {end}", {"resumed": pause_fields(over)})
