"""Who holds the locks of a SQLite file, as far as the system tells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from zkelect.stores.locks import lockers, told

__all__ = ["holders"]

# Where SQLite locks, in bytes: os_unix.c (PENDING_BYTE and what follows it) and wal.c
# (WAL_WRITE_LOCK). A writer holds a write lock there, a reader in rollback mode a read lock.
_PENDING: Final = range(0x4000_0000, 0x4000_0000 + 512)
_WAL_WRITER: Final = range(120, 121)


def holders(path: Path, request: str) -> str:
    """Name the processes that are in the way of this request: "commit", or another."""
    if request == "commit":  # we are the writer: readers are in the way
        return told(lockers(path, "POSIX", "READ", _PENDING) - {os.getpid()})
    shm = Path(f"{path.resolve()}-shm")
    return told(
        lockers(path, "POSIX", "WRITE", _PENDING) | lockers(shm, "POSIX", "WRITE", _WAL_WRITER)
    )
