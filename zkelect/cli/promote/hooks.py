"""``zkelect promote hooks``: the agent of one server, looked after by the user's executables."""

from __future__ import annotations

from pathlib import Path

import click

from zkelect.cli.durations import timed
from zkelect.cli.promote.agent import Attendance, attending
from zkelect.cli.promote.membership import joining
from zkelect.recipes.hooks import HookedServer, Hooks, Verb

__all__ = ["hooks"]


@click.command(short_help="Look after a server of any kind, by executables of your own.")
@joining("TEXT", "Where the others reach this server, as their hooks understand it.")
@click.option(
    "--hooks",
    "hooks_path",
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="A folder of executables named as the verbs, or one executable that gets the verb.",
)
@timed("--look-timeout", 2, "After that, 'position' and 'reach' are killed.")
@attending
def hooks(attendance: Attendance, *, hooks_path: Path, look_timeout: float) -> None:
    """Look after one server of any kind, by executables that you write.

    The verbs: position, demote, close, freeze, promote, open, follow; and, where there is such a
    thing, check, reach, fence, catch-up, claim. Each gets a JSON object on its input, and answers
    with one. It runs until Ctrl-C or SIGTERM; a primary is then demoted in good order.
    """
    found = Hooks(hooks_path)
    if attendance.policy.require_fence and found.lacks(Verb.FENCE):
        raise click.UsageError(f"--require-fence, and {hooks_path} has no hook 'fence'")
    attendance.look_after(HookedServer(attendance.member, found, look_timeout=look_timeout))
