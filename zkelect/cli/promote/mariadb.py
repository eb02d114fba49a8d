"""``zkelect promote mariadb``: the agent of one MariaDB server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs
import click

from zkelect.cli.promote.agent import Attendance, attending
from zkelect.cli.promote.fencing import fenced
from zkelect.cli.promote.membership import joining
from zkelect.cli.words import words

__all__ = ["mariadb"]

_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(short_help="Look after one MariaDB 10.11 server.")
@joining("HOST:PORT", "Where the others reach this server.")
@click.option(
    "--socket",
    required=True,
    type=click.Path(path_type=Path),
    help="The Unix socket of this server.",
)
@click.option(
    "--data-directory",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Of this server.",
)
@click.option(
    "--user",
    required=True,
    metavar="USER",
    help="The agent's account, the same on all members, with ALL PRIVILEGES.",
)
@click.option("--password-file", type=_FILE, help="Its first line is that account's password.")
@click.option(
    "--replication-user",
    required=True,
    metavar="USER",
    help="The account as which a primary is followed, with REPLICATION SLAVE.",
)
@click.option(
    "--replication-password-file",
    type=_FILE,
    help="Its first line is that account's password.",
)
@click.option(
    "--database",
    default="zkelect",
    show_default=True,
    metavar="NAME",
    help="Where the fence's table is; it exists.",
)
@click.option(
    "--start",
    type=words,
    default="",
    metavar="COMMAND",
    help="Starts the server and returns: 'systemctl start mariadb'.  [default: others do]",
)
@fenced
@attending
def mariadb(
    attendance: Attendance,
    *,
    socket: Path,
    data_directory: Path,
    user: str,
    password_file: Path | None,
    replication_user: str,
    replication_password_file: Path | None,
    database: str,
    start: tuple[str, ...],
) -> None:
    """Look after one MariaDB 10.11 server, on its host, as its user or root.

    It runs until Ctrl-C or SIGTERM; a primary is then demoted in good order. The server has to
    start with read_only and skip_slave_start, and takes writes only while this agent has the
    right to it. Without --fence there are planned switches and no fail-over: --require-fence
    always holds.
    """
    from zkelect.recipes.mariadb import MariaDB, Place  # noqa: PLC0415  needs an extra

    place = Place(
        socket=socket,
        data_directory=data_directory,
        user=user,
        password=_secret(password_file),
        replication_user=replication_user,
        replication_password=_secret(replication_password_file),
        database=database,
        start=start,
    )
    server = MariaDB(attendance.member, place, domain=attendance.path, fence=attendance.fence())
    _careful(attendance).look_after(server)


def _careful(attendance: Attendance) -> Attendance:
    return attrs.evolve(attendance, policy=attrs.evolve(attendance.policy, require_fence=True))


def _secret(file: Path | None) -> str:
    """Return the password, which is no argument: those everybody on the host can see."""
    return "" if file is None else file.read_text("utf-8").partition("\n")[0]
