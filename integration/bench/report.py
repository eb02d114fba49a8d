"""The table."""

from __future__ import annotations

import argparse
import logging
import os
import platform
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from bench import (
    checking,
    crowd,
    importing,
    many,
    probing,
    queueing,
    redis_sets,
    succession,
    znodes,
)
from bench.samples import HEADINGS
from zkelect.testing import find_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.samples import Row

__all__ = ["main"]


def _guarding(rounds: int) -> Iterator[Row]:
    """Measure the SQL stores; only they need a database's driver."""
    from bench import guarding  # not above: the other parts run without one

    return guarding.rows(rounds)


_PARTS: Final[dict[str, Callable[[int], Iterator[Row]]]] = {
    "queueing": queueing.rows,
    "crowd": crowd.rows,
    "checking": checking.rows,
    "guarding": _guarding,
    "importing": importing.rows,
    "many": many.rows,
    "probing": probing.rows,
    "redis": redis_sets.rows,
    "succession": succession.rows,
    "znodes": znodes.rows,
}


def main() -> None:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python integration/bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(_PARTS)}; or all")
    parser.add_argument("--rounds", type=int, default=5, help="samples of each figure (5)")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(_PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    logging.disable(logging.WARNING)  # leaders that are ended on purpose are no news
    rows: list[Row] = []
    for part in asked.parts or _PARTS:
        sys.stderr.write(f"measuring: {part}\n")
        rows += _PARTS[part](asked.rounds)
    print(_where())
    print("\n".join(_lines(rows)))


def _where() -> str:
    """Say on what this was measured: absolute times mean nothing without it."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("kazoo", "attrs"))
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    return (
        f"Python {platform.python_version()}, {libraries}, ZooKeeper from {find_server().origin}, "
        f"{os.cpu_count()} processors, load {load}\n"
        "medians of one run, least and greatest in brackets; ratios are of samples taken in turns\n"
    )


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    table = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    notes = ["", *(row.note for row in rows)]
    for cells, note in zip(table, notes, strict=True):
        yield "  ".join(map(str.ljust, cells, widths)).rstrip()
        if note:
            yield f"    {note}"
