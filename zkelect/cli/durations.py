"""Seconds on the command line: numbers that can be waited for."""

from __future__ import annotations

from typing import Any, Final

import click

__all__ = ["Seconds"]

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
