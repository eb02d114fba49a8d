"""``zkelect promote hooks``: the agent of one server, looked after by the user's executables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zkelect.cli.connection import reaching
from zkelect.cli.durations import Seconds
from zkelect.cli.promote.agent import run_agent
from zkelect.cli.promote.policies import deciding
from zkelect.recipes.hooks import HookedServer, Hooks, Verb
from zkelect.recipes.member import Member

if TYPE_CHECKING:
    from zkelect.cli.connection import Target
    from zkelect.recipes.choice import Policy

__all__ = ["hooks"]


@click.command()
@click.argument("path")
@click.option("--name", required=True, metavar="NAME", help="Of this member, unique in PATH.")
@click.option(
    "--address",
    required=True,
    metavar="TEXT",
    help="Where the others reach this server, as their hooks understand it.",
)
@click.option(
    "--hooks",
    "hooks_path",
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="A folder of executables named as the verbs, or one executable that gets the verb.",
)
@click.option(
    "--look-timeout",
    type=Seconds(min=0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="SEC",
    help="After that, 'position' and 'reach' are killed.",
)
@click.option("--priority", type=int, default=0, show_default=True, help="Among equals.")
@click.option("--no-promote", is_flag=True, help="Never promote this one.")
@deciding
@reaching
def hooks(
    target: Target,
    path: str,
    name: str,
    address: str,
    hooks_path: Path,
    look_timeout: float,
    priority: int,
    no_promote: bool,
    policy: Policy,
) -> None:
    """Look after one server of any kind, by executables that you write.

    The verbs: position, demote, close, freeze, promote, open, follow; and, where there is such a
    thing, check, reach, fence, catch-up, claim. Each gets a JSON object on its input, and answers
    with one. It runs until Ctrl-C or SIGTERM; a primary is then demoted in good order.
    """
    found = Hooks(hooks_path)
    if policy.require_fence and found.lacks(Verb.FENCE):
        raise click.UsageError(f"--require-fence, and {hooks_path} has no hook 'fence'")
    member = Member(name=name, address=address, priority=priority, candidate=not no_promote)
    server = HookedServer(member, found, look_timeout=look_timeout)
    try:
        run_agent(target, path, server, policy)
    finally:
        server.close()
