"""How data are shown: a table for people, JSON and tab-separated values for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import click

from zkelect.cli.escaping import printable

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
        type=click.Choice([str(each) for each in Format]),  # of members it takes the names
        default=str(Format.TABLE),
        show_default=True,
        callback=lambda _context, _parameter, value: Format(value),
        help="How to show it.",
    )
    return option(function)


def write_json(value: Any) -> None:
    """Write a value as one line of JSON, in ASCII: it passes through any locale and pipe."""
    click.echo(json.dumps(value))


def write_rows(rows: Iterable[Sequence[object]]) -> None:
    """Write rows of tab-separated values: None is empty, true and false are as in JSON.

    A backslash, and what is no visible character, tab and newline among it, is its escape.
    """
    for row in rows:
        click.echo("\t".join(map(_field, row)))


def _field(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else printable(str(value).replace("\\", "\\\\"))
