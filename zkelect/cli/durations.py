"""Seconds on the command line: numbers that can be waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

__all__ = ["Seconds", "timed"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_LONGEST: Final = 366 * 86_400


class Seconds(click.FloatRange):
    """A range of seconds, without the floats that are no duration: nan, infinity, ages.

    ``click.FloatRange`` lets nan through, since every comparison with it is false.
    """

    name = "number of seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not abs(seconds) <= _LONGEST:
            self.fail(f"{seconds:g} is no number of seconds up to a year.", param, ctx)
        return seconds


def timed(option: str, default: float, meaning: str) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a command an option of seconds above 0.

    :param option: with its dashes. :param default: in seconds. :param meaning: its help.
    """
    return click.option(
        option,
        type=Seconds(min=0, min_open=True),
        default=default,
        show_default=True,
        metavar="SEC",
        help=meaning,
    )
