"""``zkelect promote postgres``: the agent of one PostgreSQL server."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zkelect.cli.connection import reaching
from zkelect.cli.promote.agent import run_agent
from zkelect.cli.promote.fencing import fence_by
from zkelect.cli.promote.policies import deciding
from zkelect.recipes.member import Member

if TYPE_CHECKING:
    from zkelect.cli.connection import Target
    from zkelect.recipes.choice import Policy

__all__ = ["postgres"]


@click.command()
@click.argument("path")
@click.option("--name", required=True, metavar="NAME", help="Of this member, unique in PATH.")
@click.option(
    "--address",
    required=True,
    metavar="CONNINFO",
    help="Where the others reach this server: 'host=10.0.0.1 port=5432'.",
)
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="The server's data directory.",
)
@click.option(
    "--local",
    required=True,
    metavar="CONNINFO",
    help="How this agent reaches it, as a superuser: 'host=/var/run/postgresql user=postgres'.",
)
@click.option(
    "--credentials",
    required=True,
    metavar="CONNINFO",
    help="Added to the others' addresses, for a superuser that may replicate: "
    "'user=postgres dbname=postgres passfile=/etc/zkelect/pgpass'. No passwords here.",
)
@click.option(
    "--options", default="", metavar="TEXT", help="For 'postgres' at each start: '-c name=value'."
)
@click.option(
    "--programs", type=click.Path(path_type=Path), help="Folder of pg_ctl.  [default: found]"
)
@click.option("--log", type=click.Path(path_type=Path), help="What pg_ctl writes to.")
@click.option("--slots", is_flag=True, help="Hold the WAL for followers by replication slots.")
@click.option("--priority", type=int, default=0, show_default=True, help="Among equals.")
@click.option("--no-promote", is_flag=True, help="Never promote this one.")
@click.option(
    "--fence",
    metavar="COMMAND",
    help="Switches another member's server off; gets its name and address, ends with 0 when it is.",
)
@deciding
@reaching
def postgres(
    target: Target,
    path: str,
    name: str,
    address: str,
    data: Path,
    local: str,
    credentials: str,
    options: str,
    programs: Path | None,
    log: Path | None,
    slots: bool,
    priority: int,
    no_promote: bool,
    fence: str | None,
    policy: Policy,
) -> None:
    """Look after one PostgreSQL 15 server, on its host, as its user or root.

    It runs until Ctrl-C or SIGTERM; a primary is then demoted in good order. The server starts as
    a standby from now on, and takes writes only while this agent has the right to it.
    """
    from zkelect.recipes.postgres import Place, Postgres  # noqa: PLC0415  needs an extra

    place = Place(
        data_directory=data,
        local=local,
        credentials=credentials,
        options=tuple(shlex.split(options)),
        programs=programs,
        log=log,
        slots=slots,
    )
    member = Member(name=name, address=address, priority=priority, candidate=not no_promote)
    means = None if fence is None else fence_by(tuple(shlex.split(fence)))
    server = Postgres(member, place, domain=path, fence=means)
    try:
        run_agent(target, path, server, policy)
    finally:
        server.close()
