"""The options that say who a server is among those of its cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from zkelect.core.paths import normalize
from zkelect.recipes.member import Member

__all__ = ["cluster", "joining"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

cluster: Final = click.argument("path", callback=lambda _context, _parameter, path: normalize(path))
"""Gives a command PATH, that of a cluster, in its only spelling."""


def joining(metavar: str, address: str) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a command PATH and who joins it: ``path`` and ``member``.

    :param metavar: of the address. :param address: what the help says of it.
    """
    options = (
        cluster,
        click.option(
            "--name", required=True, metavar="NAME", help="Of this member, unique in PATH."
        ),
        click.option("--address", required=True, metavar=metavar, help=address),
        click.option("--priority", type=int, default=0, show_default=True, help="Among equals."),
        click.option("--no-promote", is_flag=True, help="Never promote this one."),
    )

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def join(
            *args: Any, name: str, address: str, priority: int, no_promote: bool, **kwargs: Any
        ) -> Any:
            member = Member(name=name, address=address, priority=priority, candidate=not no_promote)
            return function(*args, member=member, **kwargs)

        for option in reversed(options):
            join = option(join)
        return join  # type: ignore[return-value]  # the options fill in what the function lacks

    return decorate
