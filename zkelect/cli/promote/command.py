"""The group ``zkelect promote``."""

from __future__ import annotations

import click

from zkelect.cli.promote.acts import pause, resume, switchover
from zkelect.cli.promote.hooks import hooks
from zkelect.cli.promote.mariadb import mariadb
from zkelect.cli.promote.pgbouncer import pgbouncer
from zkelect.cli.promote.postgres import postgres
from zkelect.cli.promote.redis import redis
from zkelect.cli.promote.status import status

__all__ = ["promote"]


@click.group(no_args_is_help=True)
def promote() -> None:
    """Keep one primary among replicated servers: promote, demote, re-join.

    An agent runs beside each server. PATH is that of the cluster in ZooKeeper, the same for all.
    """


for command in (postgres, redis, mariadb, hooks, pgbouncer, status, switchover, pause, resume):
    promote.add_command(command)
