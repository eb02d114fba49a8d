"""What a refusal must be: told by an error with its facts, and without a trace."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

import zkelect

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Belongings", "assert_misuse"]


@attrs.frozen
class Belongings:
    """What this process holds: its threads and its sockets."""

    threads: frozenset[threading.Thread]
    sockets: frozenset[str]

    @classmethod
    def now(cls) -> Belongings:
        return cls(frozenset(threading.enumerate()), frozenset(_sockets()))

    def more_than(self, before: Belongings) -> set[object]:
        return {*(self.threads - before.threads), *(self.sockets - before.sockets)}


def _sockets() -> Iterator[str]:
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself, or closed meanwhile
            target = str(descriptor.readlink())
            if target.startswith("socket:"):
                yield target


def assert_misuse(error: zkelect.InvalidArgument, argument: str, value: object) -> None:
    assert isinstance(error, zkelect.Misuse)
    assert isinstance(error, ValueError)
    assert (error.argument, error.value) == (argument, value)
    assert argument in str(error)
    assert error.expected in str(error)
