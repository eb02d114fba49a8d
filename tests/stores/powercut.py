"""What a power cut leaves of a folder: every state that the calls made so far allow.

What is in a file is sure after fsync of the file, which names there are after fsync of the
folder (fsync(2)). Of everything else any part may be there or not, in any order: each
change of a name by itself, and of a file's unsynced content nothing, half, or all.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

__all__ = ["Died", "Disk", "File", "Recorder"]

State = Mapping[str, bytes]


class Died(BaseException):
    """The process is gone: nothing that it would have done happens any more."""


@attrs.define
class File:
    """One file, whatever its name. ``versions``: its unsynced contents, the last one seen."""

    sure: bytes = b""
    versions: list[bytes] = attrs.field(factory=list)

    @property
    def seen(self) -> bytes:
        return self.versions[-1] if self.versions else self.sure

    def after_power_cut(self) -> set[bytes]:
        halves = {version[: len(version) // 2] for version in self.versions}
        return {self.sure, *self.versions, *halves}


Change = tuple[str, File | None]
"""A name, and what it leads to from now on."""


class Disk:
    """A folder as it is seen, and as it may come back."""

    def __init__(self, content: State) -> None:
        self.names = {name: File(data) for name, data in content.items()}
        self._sure = dict(self.names)
        self._changes: list[tuple[Change, ...]] = []

    def change(self, *changes: Change) -> None:
        """Change names; together, as a rename does."""
        self._changes.append(changes)
        _apply(self.names, changes)

    def sync(self) -> None:
        self._sure, self._changes = dict(self.names), []

    def states(self) -> Iterator[State]:
        """Yield every state in which a power cut now may leave it."""
        for kept in itertools.product((True, False), repeat=len(self._changes)):
            names = dict(self._sure)
            for changes in itertools.compress(self._changes, kept):
                _apply(names, changes)
            choices = [sorted(file.after_power_cut()) for file in names.values()]
            for contents in itertools.product(*choices):
                yield dict(zip(names, contents, strict=True))


def _apply(names: dict[str, File], changes: tuple[Change, ...]) -> None:
    for name, file in changes:
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file


class Recorder:
    """The module os, on one real folder, that keeps a disk beside it.

    :ivar steps: how many calls have changed something, or made it sure. :ivar told: called
        after each. :ivar last: the process dies before this one; None: never.
    :ivar ignored: the disk does not heed an fsync of a "file", or of the "folder".
    """

    def __init__(self, folder: Path) -> None:
        self.disk = Disk({file.name: file.read_bytes() for file in folder.iterdir()})
        self.steps = 0
        self.last: int | None = None
        self.ignored = ""
        self.told: Callable[[], None] = lambda: None
        self._folder = os.fspath(folder)
        self._open: dict[int, File | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Any, flags: int, mode: int = 0o777, **where: Any) -> int:
        made = bool(flags & os.O_CREAT) and path not in self.disk.names
        if made:
            self._step()
        descriptor = os.open(path, flags, mode, **where)
        if os.fspath(path) == self._folder:
            self._open[descriptor] = None
            return descriptor
        if made:
            self.disk.change((path, File()))
            self.told()
        self._open[descriptor] = self.disk.names[path]
        return descriptor

    def close(self, descriptor: int) -> None:
        del self._open[descriptor]
        os.close(descriptor)

    def fdopen(self, descriptor: int, mode: str) -> Any:
        del self._open[descriptor]
        return os.fdopen(descriptor, mode)

    def write(self, descriptor: int, data: Any) -> int:
        """Write less than was asked for, as a system may."""
        self._step()
        written = os.write(descriptor, data[: max(1, len(data) // 2)])
        self._saw(descriptor)
        return written

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self._step()
        written = os.pwrite(descriptor, data, offset)
        self._saw(descriptor)
        return written

    def ftruncate(self, descriptor: int, length: int) -> None:
        self._step()
        os.ftruncate(descriptor, length)
        self._saw(descriptor)

    def fsync(self, descriptor: int) -> None:
        self._step()
        file = self._open[descriptor]
        if file is None and self.ignored != "folder":
            self.disk.sync()
        if file is not None and self.ignored != "file":
            file.sure, file.versions = file.seen, []
        self.told()

    def rename(self, old: str, new: str, **where: Any) -> None:
        self._step()
        os.rename(old, new, **where)  # noqa: PTH104  # as the store calls it
        self.disk.change((new, self.disk.names[old]), (old, None))
        self.told()

    def unlink(self, name: str, **where: Any) -> None:
        if name in self.disk.names:
            self._step()
        os.unlink(name, **where)
        self.disk.change((name, None))
        self.told()

    def _step(self) -> None:
        if self.last is not None and self.steps >= self.last:
            raise Died
        self.steps += 1

    def _saw(self, descriptor: int) -> None:
        """Files of the store are small, so their whole content is read back."""
        file = self._open[descriptor]
        assert file is not None
        file.versions.append(Path(f"/proc/self/fd/{descriptor}").read_bytes())
        self.told()
