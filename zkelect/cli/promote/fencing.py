"""A command that switches another member's server off: a power switch, a hypervisor."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import click

from zkelect.cli.failures import tell
from zkelect.cli.words import program
from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer, Member

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["fence_by", "fenced"]

fenced: Final = click.option(
    "--fence",
    type=program,
    metavar="COMMAND",
    help="Switches another member's server off; gets its name and address, ends with 0 when it is.",
)
"""Gives a command ``--fence``, for :meth:`zkelect.cli.promote.agent.Attendance.fence`."""


def fence_by(command: Sequence[str]) -> Callable[[Member, float], Answer]:
    """Return the means that runs this command with the member's name and address.

    Only exit status 0, in time, counts as fenced; whatever else means that nobody knows.
    """

    def fence(member: Member, deadline: float) -> Answer:
        try:
            done = subprocess.run(
                [*command, member.name, member.address],
                stdin=subprocess.DEVNULL,
                timeout=max(deadline - now(), 0.0),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            tell(f"{member.name} is not fenced: {error}")
            return Answer.UNKNOWN
        if done.returncode != 0:
            tell(f"{member.name} is not fenced: {command[0]} ended with {done.returncode}")
            return Answer.UNKNOWN
        return Answer.YES

    return fence
