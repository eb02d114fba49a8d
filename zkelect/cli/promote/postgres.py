"""``zkelect promote postgres``: the agent of one PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import click

from zkelect.cli.promote.agent import Attendance, attending
from zkelect.cli.promote.fencing import fenced
from zkelect.cli.promote.membership import joining
from zkelect.cli.promote.policies import synchronizing
from zkelect.cli.words import words

__all__ = ["postgres"]


@click.command(short_help="Look after one PostgreSQL 15 server.")
@joining("CONNINFO", "Where the others reach this server: 'host=10.0.0.1 port=5432'.")
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
    "--options",
    type=words,
    default="",
    metavar="TEXT",
    help="For 'postgres' at each start: '-c name=value'.",
)
@click.option(
    "--programs", type=click.Path(path_type=Path), help="Folder of pg_ctl.  [default: found]"
)
@click.option("--log", type=click.Path(path_type=Path), help="What pg_ctl writes to.")
@click.option("--slots", is_flag=True, help="Hold the WAL for followers by replication slots.")
@fenced
@synchronizing
@attending
def postgres(
    attendance: Attendance,
    *,
    data: Path,
    local: str,
    credentials: str,
    options: tuple[str, ...],
    programs: Path | None,
    log: Path | None,
    slots: bool,
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
        options=options,
        programs=programs,
        log=log,
        slots=slots,
    )
    server = Postgres(attendance.member, place, domain=attendance.path, fence=attendance.fence())
    attendance.look_after(server)
