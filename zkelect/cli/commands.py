"""What commands there are, and where: known without importing any of them."""

from __future__ import annotations

from typing import Final

import attrs

__all__ = ["SECTIONS", "Entry", "find"]


@attrs.frozen
class Entry:
    """One command.

    :ivar module: where it is. :ivar attribute: its name there.
    :ivar help: the first line of its help, so that the list needs no import.
    """

    name: str
    module: str
    attribute: str
    help: str


SECTIONS: Final[dict[str, tuple[Entry, ...]]] = {
    "Try": (
        Entry(
            "demo",
            "zkelect.cli.demo.command",
            "demo",
            "Watch an election on a real ZooKeeper, for about half a minute.",
        ),
    ),
}
"""The commands as the help lists them: title of each section, and what is in it."""


def find(name: str) -> Entry | None:
    """Return the command of this name, None when there is none."""
    entries = (entry for section in SECTIONS.values() for entry in section)
    return next((entry for entry in entries if entry.name == name), None)
