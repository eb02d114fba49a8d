"""Who does it, and why: what every act on an election is written down with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["accounted"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def accounted(function: _Function) -> _Function:
    """Give a command ``--reason`` and ``--by``, as its arguments ``reason`` and ``by``."""
    why = click.option(
        "--reason",
        metavar="TEXT",
        default="",
        help="Why: for people, in the election's history.",
    )
    who = click.option(
        "--by",
        metavar="NAME",
        callback=_named,
        help="Who does it, for people.  [default: user and host]",
    )
    return why(who(function))


def _named(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """Refuse what names nobody, such as a variable of the shell that is not set."""
    if name is not None and not name.strip():
        raise click.BadParameter("it names nobody; leave it out for user and host.", ctx, param)
    return name
