"""``zkelect promote pgbouncer``: one pgbouncer that goes where the primary is."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zkelect.cli.connection import reaching
from zkelect.cli.durations import timed
from zkelect.cli.failures import tell
from zkelect.cli.promote.membership import cluster
from zkelect.cli.promote.stopping import until_a_signal

if TYPE_CHECKING:
    from zkelect.cli.connection import Target

__all__ = ["pgbouncer"]


@click.command(short_help="Lead one pgbouncer to the primary.")
@cluster
@click.option("--name", metavar="NAME", help="Unique among the pools of PATH.  [default: host]")
@click.option(
    "--admin",
    required=True,
    metavar="CONNINFO",
    help="Its admin console: 'host=/var/run/postgresql port=6432 user=pgbouncer dbname=pgbouncer'.",
)
@click.option(
    "--file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Written by this command; pgbouncer's configuration says '%include FILE'.",
)
@click.option(
    "--database",
    "databases",
    required=True,
    multiple=True,
    metavar="NAME[=OPTIONS]",
    help="Leads to the primary: 'app', or 'app=dbname=application pool_size=5'. Repeatable.",
)
@timed("--within", 5.0, "For open transactions to end, before a planned switch goes on.")
@reaching
def pgbouncer(
    target: Target,
    path: str,
    name: str | None,
    admin: str,
    file: Path,
    databases: tuple[str, ...],
    within: float,
) -> None:
    """Lead one pgbouncer to the primary of PATH, on its host, as a user that may write FILE.

    While the primary is changed its clients wait (PAUSE); then it is told where the new one is
    (RELOAD), and they go on (RESUME). In a planned switch nothing is closed before they wait.
    It runs until Ctrl-C or SIGTERM.
    """
    from zkelect.recipes.pgbouncer import Database, PgBouncer  # noqa: PLC0415  needs an extra

    found = tuple(Database.parse(text) for text in databases)
    name = socket.gethostname() if name is None else name
    pool = PgBouncer(name, admin, file, found, within=within)
    with until_a_signal() as stop, target.session() as session:
        tell(f"{path}: leading {name} to its primary")
        pool.run(session, path, stop)
