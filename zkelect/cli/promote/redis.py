"""``zkelect promote redis``: the agent of one Redis server."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlsplit

import click

from zkelect.cli.promote.agent import Attendance, attending
from zkelect.cli.promote.fencing import fenced
from zkelect.cli.promote.membership import joining
from zkelect.cli.words import words

__all__ = ["redis"]


@click.command(short_help="Look after one Redis 7 server.")
@joining("HOST:PORT", "Where the others reach this server.")
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
    type=words,
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
@fenced
@attending
def redis(
    attendance: Attendance,
    *,
    url: str,
    password_file: Path | None,
    record: Path,
    start: tuple[str, ...],
    min_replicas: int,
    max_lag: int,
) -> None:
    """Look after one Redis 7 server, on its host, as its user or root.

    It runs until Ctrl-C or SIGTERM; a primary is then demoted in good order. The server has to
    start as a replica, and takes writes only while this agent has the right to it.
    """
    from zkelect.recipes.redis import Place, RedisServer  # noqa: PLC0415  needs an extra

    place = Place(
        url=_with_password(url, password_file),
        record=record,
        start=start,
        min_replicas=min_replicas,
        max_lag=max_lag,
    )
    server = RedisServer(attendance.member, place, domain=attendance.path, fence=attendance.fence())
    attendance.look_after(server)


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
