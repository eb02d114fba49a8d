"""The table."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from bench import checking, crowd, importing, probing, queueing, succession
from bench.samples import HEADINGS
from zkelect.testing import find_server

if TYPE_CHECKING:
    from bench.samples import Row

__all__ = ["main"]

_PARTS: Final = {
    "queueing": queueing.rows,
    "crowd": crowd.rows,
    "checking": checking.rows,
    "importing": importing.rows,
    "probing": probing.rows,
    "succession": succession.rows,
}


def main() -> None:
    """Measure the parts that were asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python integration/bench")
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], help="all, if none is given")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    for part in asked.parts or _PARTS:
        for row in _PARTS[part](asked.rounds):
            print(row)
