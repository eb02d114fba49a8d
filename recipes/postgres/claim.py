"""One agent for one server: two would each undo what the other does."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["claim", "disclaim"]

_held: Final[dict[Path, int]] = {}
"""By this process: a second look at the server from here is no second agent."""


def claim(folder: Path) -> None:
    """Lock the data directory itself, for this process; that leaves no file, and goes with us.

    Where the file system knows no such lock, as some of NFS do, nothing is claimed.

    :raises Unfit: another process has it.
    """
    folder = folder.resolve()
    if folder in _held:
        return
    with suppress(OSError):  # what is wrong with the folder others say better
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise Unfit(
                f"another agent looks after {folder}, under whatever name: end that one first"
            ) from None
        _held[folder] = handle


def disclaim(folder: Path) -> None:
    """Let others have it; harmless when it is not ours."""
    if (handle := _held.pop(folder.resolve(), None)) is not None:
        os.close(handle)
