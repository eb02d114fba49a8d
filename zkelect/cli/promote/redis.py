"""``zkelect promote redis``: the agent of one Redis server."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import click

from zkelect.cli.connection import reaching
from zkelect.cli.promote.agent import run_agent
from zkelect.cli.promote.fencing import fence_by
from zkelect.cli.promote.policies import deciding
from zkelect.recipes.member import Member

if TYPE_CHECKING:
    from zkelect.cli.connection import Target
    from zkelect.recipes.choice import Policy

__all__ = ["redis"]


@click.command()
@click.argument("path")
@click.option("--name", required=True, metavar="NAME", help="Of this member, unique in PATH.")
@click.option(
    "--address",
    required=True,
    metavar="HOST:PORT",
    help="Where the others reach this server.",
)
@click.option(
    "--url",
    required=True,
    metavar="URL",
    help="How this agent reaches it, redis://user@127.0.0.1:6379/0 or rediss://…; the others are "
    "reached as the same user, who may run every command.",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Its first line is that user's password.",
)
@click.option(
    "--record",
    required=True,
    type=click.Path(path_type=Path),
    help="A file of the agent's own, on a disk that outlives a restart.",
)
@click.option(
    "--start",
    default="",
    metavar="COMMAND",
    help="Starts the server and returns: 'systemctl start redis-server'.  [default: others do]",
)
@click.option(
    "--min-replicas",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="The primary takes writes only while so many followers report.",
)
@click.option(
    "--max-lag",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="SEC",
    help="With --min-replicas: how long ago they may have reported last.",
)
@click.option("--priority", type=int, default=0, show_default=True, help="Among equals.")
@click.option("--no-promote", is_flag=True, help="Never promote this one.")
@click.option(
    "--fence",
    metavar="COMMAND",
    help="Switches another member's server off; gets its name and address, ends with 0 when it is.",
)
@deciding
@reaching
def redis(
    target: Target,
    path: str,
    name: str,
    address: str,
    url: str,
    password_file: Path | None,
    record: Path,
    start: str,
    min_replicas: int,
    max_lag: int,
    priority: int,
    no_promote: bool,
    fence: str | None,
    policy: Policy,
) -> None:
    """Look after one Redis 7 server, on its host, as its user or root.

    It runs until Ctrl-C or SIGTERM; a primary is then demoted in good order. The server has to
    start as a replica, and takes writes only while this agent has the right to it.
    """
    from zkelect.recipes.redis import Place, RedisServer  # noqa: PLC0415  needs an extra

    place = Place(
        url=_with_password(url, password_file),
        record=record,
        start=tuple(shlex.split(start)),
        min_replicas=min_replicas,
        max_lag=max_lag,
    )
    member = Member(name=name, address=address, priority=priority, candidate=not no_promote)
    means = None if fence is None else fence_by(tuple(shlex.split(fence)))
    server = RedisServer(member, place, domain=path, fence=means)
    try:
        run_agent(target, path, server, policy)
    finally:
        server.close()


def _with_password(url: str, file: Path | None) -> str:
    """Add the password, which is no argument: those everybody on the host can see."""
    parts = urlsplit(url)
    if parts.password is not None:
        raise click.UsageError("--url has a password in it: put that into a --password-file")
    if file is None:
        return url
    password = quote(file.read_text("utf-8").partition("\n")[0], safe="")
    user, _, address = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}:{password}@{address}").geturl()
