"""The command ``zkelect doctor``: its arguments, and how it ends."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
from rich.console import Console

from zkelect.cli.connection import Target, reaching
from zkelect.cli.doctor.diagnosis import diagnose, worst
from zkelect.cli.doctor.report import field_rows, json_object, report
from zkelect.cli.doctor.visit import Visit
from zkelect.cli.drawing import Page, new_console, print_lines
from zkelect.cli.durations import Seconds
from zkelect.cli.escaping import printable
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.core.paths import normalize

__all__ = ["doctor"]

_WORDS: Final = 2
_FORM: Final = "the form is: zkelect doctor [HOSTS] [PATH], and a PATH begins with a slash."


def _taking_words(reach: Callable[..., None]) -> Callable[..., None]:
    """Let HOSTS be an argument, too: who is called at night has them at hand, and no file."""

    @functools.wraps(reach)  # so the options come along
    def take(words: tuple[str, ...], hosts: str | None, **others: Any) -> None:
        named, path = _split(words)
        context = click.get_current_context()
        typed = context.get_parameter_source("hosts") is click.core.ParameterSource.COMMANDLINE
        if named is not None and typed:
            raise click.UsageError("HOSTS is there, and -H/--hosts as well: one of them rules.")
        reach(hosts=hosts if named is None else named, path=path, **others)

    return take


def _split(words: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return hosts and path: only a path begins with a slash."""
    hosts = [word for word in words if not word.startswith("/")]
    paths = [word for word in words if word.startswith("/")]
    if len(hosts) > 1 or len(paths) > 1 or [*words] != [*hosts, *paths]:
        raise click.UsageError(f"{' '.join(words)!r}: {_FORM}")
    return next(iter(hosts), None), next(iter(paths), None)


@click.command()
@click.argument("words", nargs=-1, metavar="[HOSTS] [PATH]")
@_taking_words
@reaching
@click.option(
    "--watch-host",
    type=Seconds(0, 3600),
    default=3,
    show_default=True,
    metavar="SEC",
    help="Seconds to watch this host for pauses.",
)
@formatted
def doctor(target: Target, path: str | None, watch_host: float, output: Format) -> None:
    """Examine servers, session, this host and an election; say what to do.

    Opens sessions and closes them, and makes an ephemeral znode that goes with its session;
    changes nothing else. HOSTS may also come from -H, ZKELECT_HOSTS or the configuration file.

    \b
    Exit status, as monitoring plugins have it:
      0    fine; there may be notes
      1    warnings: elections work, but not under every fault, or not for long
      2    critical: no leader, or not the promised one
      64   wrong usage
      130  interrupted
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    wanted = None if path is None else normalize(path)
    with _telling_progress() as tell:
        facts = Visit(target, wanted, seconds=watch_host, tell=tell).make()
    findings = diagnose(facts)
    if output is Format.JSON:
        write_json(json_object(facts, findings))
    elif output is Format.TSV:
        write_rows(field_rows(findings))
    else:
        console = new_console()
        print_lines(console, report(Page.of(console), facts, findings))
    sys.exit(worst(findings))


@contextmanager
def _telling_progress() -> Iterator[Callable[[str], None]]:
    """Show on the terminal what takes its time; nothing where there is none."""
    with _without_warnings(), Console(stderr=True, highlight=False).status("") as status:
        yield lambda text: status.update(f"{printable(text)} ...")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """What the library warns of is among the findings: say it once, unless -v was given."""
    logger = logging.getLogger("zkelect")
    level = logger.level
    if level == logging.WARNING:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
