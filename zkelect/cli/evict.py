"""``zkelect evict``: a candidate leaves the queue, and no two lead meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import zkelect
from zkelect.cli.accounting import accounted
from zkelect.cli.connection import reaching
from zkelect.cli.consent import ask_consent, consenting
from zkelect.cli.durations import Seconds
from zkelect.cli.escaping import printable
from zkelect.cli.failures import tell
from zkelect.cli.formats import formatted
from zkelect.cli.outcomes import pause_fields, write_outcome
from zkelect.session.evicting import find_candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.cli.connection import Target
    from zkelect.cli.formats import Format

__all__ = ["evict"]


@click.command()
@click.argument("path")
@click.argument("who", metavar="NODE")
@click.option(
    "--longest-lease",
    type=Seconds(min=0),
    metavar="SEC",
    help="The largest session timeout that the servers grant; for a leader whose term does not "
    "tell. 0: it is known to be dead.",
)
@click.option(
    "--foreign", is_flag=True, help="Also a candidate of another library, which has no lease."
)
@accounted
@consenting
@formatted
@reaching
def evict(
    target: Target,
    path: str,
    who: str,
    longest_lease: float | None,
    foreign: bool,
    reason: str,
    by: str | None,
    yes: bool,
    output: Format,
) -> None:
    """Remove a candidate from the queue, once it can lead no more.

    NODE is its znode, or a name that it alone bears. A leader is asked to go, and its znode is
    deleted only when it has not gone and its lease is over. Who waits is deleted at once; alive,
    it stands again.
    """
    with target.session() as session:
        election = zkelect.Election(session, path)
        roll = election.candidates(target.timeout)
        if not roll:
            election.paused(target.timeout)  # nobody has ever stood: the path is wrong
        whom = find_candidate(election.path, who, roll, foreign=foreign)
        ask_consent(printable(_question(election.path, whom, roll)), yes)
        try:
            evicted = election.evict(
                whom.node,
                why=reason,
                by=by,
                timeout=target.timeout,
                longest_lease=longest_lease,
                foreign=foreign,
            )
        except KeyboardInterrupt:
            tell(f"stopped waiting; {whom.name} may have been asked to go, and goes if it lives")
            raise
    write_outcome(
        output,
        str(evicted),
        {
            "name": evicted.name,
            "node": evicted.node,
            "outcome": str(evicted.outcome),
            "paused": pause_fields(evicted.pause),
        },
    )


def _question(path: str, whom: zkelect.Candidate, roll: Sequence[zkelect.Candidate]) -> str:
    """Say what will be done to it."""
    named = f"{whom.name} ({whom.node})"
    if whom.foreign:
        return (
            f"{named} is of another library: it is deleted at once, and its process may go on "
            f"beside its successor. Evict it from {path}?"
        )
    if whom.node != roll[0].node:
        return f"{named} waits; alive, it stands again, behind. Evict it from {path}?"
    return (
        f"{named} leads, or is about to: it is asked to go, and deleted when its lease is over. "
        f"Evict it from {path}?"
    )
