"""``zkelect switchover`` and ``zkelect resign``: another candidate leads in the leader's place."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

import zkelect
from zkelect.cli.accounting import accounted
from zkelect.cli.appointment import appointed, until, written
from zkelect.cli.connection import reaching
from zkelect.cli.consent import ask_consent, consenting
from zkelect.cli.durations import timed
from zkelect.cli.escaping import printable
from zkelect.cli.formats import formatted
from zkelect.cli.handing import Change
from zkelect.cli.outcomes import candidate_fields, write_outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.cli.connection import Target
    from zkelect.cli.formats import Format

__all__ = ["resign", "switchover"]

_within: Final = timed(
    "--within", 30, "Time for the leader to bring it about; else it goes on leading."
)


@click.command()
@click.argument("path")
@click.option("--to", metavar="NAME", required=True, help="Who shall lead: its name, or its znode.")
@appointed
@_within
@accounted
@consenting
@formatted
@reaching
def switchover(
    target: Target,
    path: str,
    to: str,
    at: float | None,
    within: float,
    reason: str,
    by: str | None,
    yes: bool,
    output: Format,
) -> None:
    """Let another candidate lead.

    The leader drives it: those between the two step back, then the leader resigns. Ctrl-C
    withdraws it, and the leader goes on.
    """
    look = partial(Change.of, path=path, choose=partial(_find, path, to), timeout=target.timeout)
    ask = {"within": within, "why": reason, "by": by}
    with target.session() as session:
        change = look(session)
        _agree(change, yes, "" if at is None else f" at {written(at)}")
        if at is None:
            _carry_out(change, output, **ask)
    if at is not None:
        until(at)
        with target.session() as session:
            _carry_out(look(session), output, **ask)


@click.command()
@click.argument("path")
@_within
@accounted
@consenting
@formatted
@reaching
def resign(
    target: Target,
    path: str,
    within: float,
    reason: str,
    by: str | None,
    yes: bool,
    output: Format,
) -> None:
    """Let the next in the queue lead in the leader's place.

    It is a switchover to the next one. The former leader stands again behind the others, if its
    program does so.
    """
    with target.session() as session:
        change = Change.of(session, path=path, choose=partial(_next, path), timeout=target.timeout)
        _agree(change, yes)
        _carry_out(change, output, within=within, why=reason, by=by)


def _find(path: str, to: str, roll: Sequence[zkelect.Candidate]) -> zkelect.Candidate:
    """Return who is meant; the library looks in the same order."""
    for candidate in [*(c for c in roll if c.name == to), *(c for c in roll if c.node == to)]:
        return candidate
    raise zkelect.NotStanding(path, to, [candidate.name for candidate in roll])


def _next(path: str, roll: Sequence[zkelect.Candidate]) -> zkelect.Candidate:
    if len(roll) < 2:
        raise click.ClickException(f"{path}: nobody else stands, so nobody would lead")
    return roll[1]


def _agree(change: Change, yes: bool, when: str = "") -> None:
    """Ask whether that is meant; nothing is asked when nothing would change."""
    leader, heir = change.leader, change.heir
    if leader.node != heir.node:
        present = f"{leader.name} leads {change.election.path}"
        question = f"{present}. Let {heir.name} lead in its place{when}?"
        ask_consent(printable(question), yes)


def _carry_out(change: Change, output: Format, **ask: Any) -> None:
    leader = change.bring_about(**ask)
    same = leader.node == change.leader.node
    write_outcome(
        output,
        f"{leader.name} leads {change.election.path}"
        f"{' already' if same else f' in place of {change.leader.name}'}, token {leader.token}",
        {
            "leader": candidate_fields(leader),
            "former": None if same else candidate_fields(change.leader),
        },
    )
