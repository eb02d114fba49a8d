"""How data are shown: a table for people, JSON and tab-separated values for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import click

__all__ = ["Format", "formatted", "write_json", "write_rows"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Format(StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
    JSON = "json"
    TSV = "tsv"


def formatted(function: _Function) -> _Function:
    """Give a command ``-o/--output``, as its argument ``output``, a :class:`Format`."""
    option = click.option(
        "-o",
        "--output",
        type=click.Choice([*Format]),
        default=Format.TABLE,
        show_default=True,
        callback=lambda _context, _parameter, value: Format(value),
        help="How to show it.",
    )
    return option(function)


def write_json(value: Any) -> None:
    """Write a value as one line of JSON, in ASCII: it passes through any locale and pipe."""
    click.echo(json.dumps(value))


def write_rows(rows: Iterable[Sequence[object]]) -> None:
    """Write rows of tab-separated values; None is empty, a tab or newline within is escaped."""
    for row in rows:
        click.echo("\t".join(map(_field, row)))


def _field(value: object) -> str:
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
