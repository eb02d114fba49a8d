"""An exclusive lock on a file that is never replaced."""

from __future__ import annotations

import fcntl
import os
import re
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.stores.folder import Folder

__all__ = ["Busy", "Lock", "locked"]

_PAUSE: Final = 0.001  # seconds
_IDENTITY: Final = re.compile(rb"[0-9a-f]{32}(?=\n)")
_HELD: Final[set[int]] = set()


class Busy(Exception):
    """Somebody else has held the lock all the time, so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"{seconds:g} s")


class Lock:
    """A lock that is held.

    :ivar identity: drawn when the lock file was made, and kept in it: another file at its
        place has another one. :ivar number: of its inode.
    """

    def __init__(self, folder: Folder, name: str, descriptor: int) -> None:
        self._folder, self._name, self._descriptor = folder, name, descriptor
        self.number: Final = os.fstat(descriptor).st_ino
        self.identity: Final = self._read() or self._draw()

    @property
    def intact(self) -> bool:
        """Whether the file that we hold is still the one that others would lock."""
        return _is_at(self._descriptor, self._folder, self._name)

    def _read(self) -> str:
        found = _IDENTITY.match(os.pread(self._descriptor, 64, 0))
        return found[0].decode() if found else ""

    def sync(self) -> None:
        """Make the identity durable; who drew it may have died before."""
        os.fsync(self._descriptor)

    def _draw(self) -> str:
        """The file is new, or a power cut came before its first line was durable."""
        drawn = uuid.uuid4().hex
        text = f"{drawn}\nA lock of zkelect's: never delete, replace or copy this file.\n"
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)
        return drawn


@contextmanager
def locked(folder: Folder, name: str, *, seconds: float, create: bool) -> Iterator[Lock]:
    """Hold the lock for the block; without ``create`` its file must be there.

    flock, not fcntl: a record lock is lost when any thread of the process closes the file.

    :param seconds: to ask for it, once in a millisecond; flock itself waits for ever.
    :raises Busy: it was not to be had. :raises OSError: what the system says.
    """
    descriptor = _take(folder, name, seconds, os.O_CREAT if create else 0)
    try:
        yield Lock(folder, name, descriptor)
    finally:
        _let_go(descriptor)


def _take(folder: Folder, name: str, seconds: float, create: int) -> int:
    """Lock the file that has the name: it may be another one by the time we have a lock."""
    deadline = time.monotonic() + seconds
    while True:
        descriptor = folder.open(name, os.O_RDWR | create)
        _HELD.add(descriptor)
        try:
            if not _lock(descriptor, deadline):
                raise Busy(seconds)
            if _is_at(descriptor, folder, name):
                return descriptor
        except BaseException:
            _let_go(descriptor)
            raise
        _let_go(descriptor)


def _lock(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def _is_at(descriptor: int, folder: Folder, name: str) -> bool:
    named = folder.stat(name)
    return named is not None and os.path.samestat(os.fstat(descriptor), named)


def _let_go(descriptor: int) -> None:
    _HELD.discard(descriptor)
    os.close(descriptor)


def _drop_inherited() -> None:
    """A forked child shares the lock, and would hold it on when its parent is killed."""
    while _HELD:
        with suppress(OSError):
            os.close(_HELD.pop())


os.register_at_fork(after_in_child=_drop_inherited)
