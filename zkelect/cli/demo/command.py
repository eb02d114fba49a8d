"""The command ``zkelect demo``: its options, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich import console

from zkelect.cli.demo.event import Screen
from zkelect.cli.demo.installing import explain_missing, install_with_progress
from zkelect.cli.demo.json_lines import JsonLines
from zkelect.cli.demo.show import run
from zkelect.cli.demo.timeline import Timeline
from zkelect.cli.failures import tell
from zkelect.cli.signals import Interrupted, Interruption
from zkelect.testing import InstallFailed, ServerFailed, ServerNotFound

__all__ = ["demo"]

_REST: Final = 3.0
"""Seconds between two steps of the demo: time to read what the last one has shown."""


@click.command()
@click.option(
    "--install",
    is_flag=True,
    help="Where no ZooKeeper is found, install it and Java with apt-get "
    "(Debian or Ubuntu, as root; about 95 MB).",
)
@click.option(
    "--servers",
    type=click.Choice(["1", "3"]),
    default="1",
    show_default=True,
    help="Number of ZooKeeper servers.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object per event, the last one a summary; without the pauses for reading.",
)
def demo(install: bool, servers: str, as_json: bool) -> None:
    """Watch an election on a real ZooKeeper, for about half a minute.

    Starts a private ZooKeeper on the loopback interface and three candidate processes. The
    leader appends rows to a SQLite log that is guarded by a fence. Then the leader resigns,
    the next one is frozen and woken too late, the one after that is killed.

    At the end the log is read again: acknowledged rows that are missing, and rows that a
    stale leader got through, are counted. Both must be 0.

    \b
    Exit status:
      0    all was as promised
      1    it was not; the logs are kept, and it says where
      69   no ZooKeeper server was found, or it did not start
      130  interrupted; nothing is left running
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    with Interruption() as interruption, _telling_failures():
        if install:
            install_with_progress(console.Console(stderr=True))
        report = run(
            _screen(as_json),
            servers=int(servers),
            rest=0.0 if as_json else _REST,
            interruption=interruption,
        )
    if as_json:
        for problem in report.problems:
            tell(problem)
    sys.exit(1 if report.problems else 0)


def _screen(as_json: bool) -> Screen:
    return JsonLines(sys.stdout) if as_json else Timeline(console.Console(highlight=False))


@contextmanager
def _telling_failures() -> Iterator[None]:
    """Say what went wrong, and end with the exit status for it."""
    try:
        yield
    except ServerNotFound as missing:
        tell(explain_missing(missing))
        sys.exit(os.EX_UNAVAILABLE)
    except (ServerFailed, InstallFailed) as failure:
        tell(str(failure))
        sys.exit(os.EX_UNAVAILABLE)
    except Interrupted as interrupted:
        tell(f"{interrupted.signal.name}: the demo was stopped, and all that it had started")
        raise
