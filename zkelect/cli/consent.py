"""Asking before something is done to an election that runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from zkelect.cli.exits import INTERRUPTED, NOT_DONE

__all__ = ["ask_consent", "consenting"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def consenting(function: _Function) -> _Function:
    """Give a command ``-y/--yes``, as its argument ``yes``, for :func:`ask_consent`."""
    return click.option("-y", "--yes", is_flag=True, help="Do it without asking.")(function)


def ask_consent(question: str, yes: bool) -> None:
    """Ask on the terminal, and go on only when the answer is yes.

    :param question: what will be done, to what; the default answer is no.
    :param yes: it was said on the command line already.
    :raises click.UsageError: there is nobody to ask.
    :raises click.exceptions.Exit: the answer was no (1), or Ctrl-C (130).
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{question} Nobody can be asked here: say --yes.")
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:  # Ctrl-C, or the end of input
        click.echo(err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    if not agreed:
        click.echo("zkelect: nothing was done", err=True)
        raise click.exceptions.Exit(NOT_DONE)
