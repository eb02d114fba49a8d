"""Patch files: a header that says what is broken and who must notice, and a unified diff."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Self

import attrs

__all__ = ["FOLDER", "ROOT", "DoesNotApply", "Patch", "read_all"]

FOLDER: Final = Path(__file__).resolve().parent
ROOT: Final = FOLDER.parents[1]
_FIELDS: Final = {"title", "danger", "test", "level", "hazards", "also"}
_NEEDED: Final = {"title", "danger", "test", "level"}
_LEVELS: Final = ("unit", "integration")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


class DoesNotApply(Exception):  # named for what happened
    """The code that a patch changes is not there any more: write the patch anew."""


@attrs.frozen
class Hunk:
    """One place of a diff.

    :ivar line: where it was when the diff was made, from 1.
    :ivar old, new: the lines before and after, context included.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    def apply(self, lines: list[str]) -> list[str]:
        """Replace the old lines, wherever they are now, as long as there is one such place."""
        size = len(self.old)
        places = [at for at in range(len(lines)) if tuple(lines[at : at + size]) == self.old]
        if len(places) != 1:
            raise DoesNotApply(f"{len(places)} places look like line {self.line}: {self.old}")
        (at,) = places
        return [*lines[:at], *self.new, *lines[at + size :]]


@attrs.frozen(kw_only=True)
class Patch:
    """One mutant.

    :ivar name: of the file. :ivar title: what is broken. :ivar danger: what comes of it.
    :ivar tests: which must fail, each one of them. :ivar level: what they need.
    :ivar hazards: cases of which this is the proof that their tests can fail.
    :ivar also: "exploration", when that finds it by itself.
    :ivar target: the file it changes, below the root.
    """

    name: str
    title: str
    danger: str
    tests: tuple[str, ...]
    level: str
    hazards: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    target: str
    hunks: tuple[Hunk, ...]

    @property
    def place(self) -> str:
        """Where the file is installed: the recipes lie beside the package until then."""
        return f"zkelect/{self.target}" if self.target.startswith("recipes/") else self.target

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a patch file. :raises ValueError: it is not of the form described in the docs."""
        header, _, diff = path.read_text("utf-8").partition("\n--- a/")
        fields = _fields(header)
        if unknown := fields.keys() - _FIELDS:
            raise ValueError(f"{path.name}: no header is called {sorted(unknown)}")
        if missing := _NEEDED - fields.keys():
            raise ValueError(f"{path.name}: the header lacks {sorted(missing)}")
        if fields["level"] not in _LEVELS:
            raise ValueError(f"{path.name}: the level is one of {_LEVELS}")
        target, _, body = diff.partition("\n+++ b/")
        return cls(
            name=path.stem,
            title=fields["title"],
            danger=fields["danger"],
            tests=tuple(fields["test"].split("\n")),
            level=fields["level"],
            hazards=frozenset(fields.get("hazards", "").split()),
            also=frozenset(fields.get("also", "").split()),
            target=target,
            hunks=_hunks(body.partition("\n")[2]),
        )

    @property
    def part(self) -> str:
        """Which part of the library it changes: core, session, stores …"""
        return self.place.split("/")[1].removesuffix(".py")

    def apply(self, folder: Path) -> None:
        """Change the copy of the library in that folder. :raises DoesNotApply: it cannot."""
        file = folder / self.place
        if not file.is_file():
            raise DoesNotApply(f"{self.name}: there is no {self.target}")
        lines = file.read_text("utf-8").split("\n")
        for hunk in self.hunks:
            lines = hunk.apply(lines)
        file.write_text("\n".join(lines), "utf-8")


def read_all() -> list[Patch]:
    """Return every mutant, by name."""
    return [Patch.read(path) for path in sorted(FOLDER.glob("*.patch"))]


def _fields(header: str) -> dict[str, str]:
    """Read ``name: value`` lines; one that is indented goes on, a repeated one adds a line."""
    fields: dict[str, str] = {}
    name = ""
    for line in header.splitlines():
        if line.startswith(" "):
            fields[name] += f" {line.strip()}"
        elif line:
            name, _, value = line.partition(":")
            fields[name] = f"{fields[name]}\n{value.strip()}" if name in fields else value.strip()
    return fields


def _hunks(body: str) -> tuple[Hunk, ...]:
    starts = [*_HUNK.finditer(body)]
    ends = [*(start.start() for start in starts[1:]), len(body)]
    return tuple(
        _hunk(int(start[1]), body[start.end() : end].rstrip("\n").split("\n")[1:])
        for start, end in zip(starts, ends, strict=True)
    )


def _hunk(line: int, body: list[str]) -> Hunk:
    return Hunk(
        line=line,
        old=tuple(each[1:] for each in body if not each.startswith("+")),
        new=tuple(each[1:] for each in body if not each.startswith("-")),
    )
