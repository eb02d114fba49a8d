"""Files of one folder: read whole, and replaced so that a power cut leaves the old or the new."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

__all__ = ["Folder"]

_ACL: Final = "system.posix_acl_access"


class Folder:
    """An open folder. Names in it are its own files, never links that lead elsewhere.

    Every call may raise OSError.

    :ivar path: what was opened; calls go to that very folder, also when it is renamed.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file and return its descriptor; a child process does not get it."""
        return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode, dir_fd=self._fd)

    def stat(self, name: str) -> os.stat_result | None:
        """Look at a file, None without one; a symbolic link is shown as itself."""
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def read(self, name: str) -> bytes | None:
        """Return what is in a file, None without one."""
        try:
            descriptor = self.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def replace(
        self,
        name: str,
        data: bytes,
        *,
        draft: str,
        alike: bool,
        last: Callable[[], None],
    ) -> None:
        """Replace a file, or make it: it is the old one or the new one, whole, at any instant.

        The draft is durable before it takes the name: otherwise a power cut could leave an
        empty file under it. The folder is synced after: otherwise the old file could come back
        (fsync(2); T. S. Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014).

        :param draft: the name of the new file until then; nobody else may use it.
        :param alike: keep owner, mode, ACL and user attributes of the old file.
        :param last: called when all is ready; what it raises leaves the old file.
        """
        self._unlink(draft)
        try:
            self._write(draft, data, self.path / name if alike and self.stat(name) else None)
            last()
            os.rename(draft, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            with suppress(OSError):  # the first error is the one to tell
                self._unlink(draft)
            raise
        self.sync()

    def remove(self, names: re.Pattern[str]) -> None:
        """Remove the files whose whole name fits."""
        for name in os.listdir(self._fd):  # noqa: PTH208  # pathlib knows no open folder
            if names.fullmatch(name):
                self._unlink(name)

    def sync(self, name: str | None = None) -> None:
        """Make durable what is in a file, or without one, which files there are."""
        if name is None:
            os.fsync(self._fd)
            return
        descriptor = self.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _write(self, draft: str, data: bytes, model: Path | None) -> None:
        """Nobody may open the draft of a private file before it has that file's mode."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = self.open(draft, flags, 0o666 if model is None else 0o600)
        try:
            if model is not None:
                _liken(descriptor, model)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _unlink(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)


def _liken(descriptor: int, model: Path) -> None:
    """Give a new file the owner, the mode and the attributes of another.

    The owner first: a change of it takes the set-user-ID bit away. The ACL last: the mode
    would change its mask.
    """
    old, new = model.lstat(), os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o7777)
    wanted = _attributes(model)
    for name in _attributes(descriptor).keys() - wanted.keys():
        os.removexattr(descriptor, name)  # inherited from the folder
    for name, value in wanted.items():
        os.setxattr(descriptor, name, value)


def _attributes(file: Path | int) -> dict[str, bytes]:
    """Read the attributes that are the file's own; those of other kinds the system gives."""
    try:
        names = os.listxattr(file)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    kept = (name for name in names if name == _ACL or name.startswith("user."))
    return {name: os.getxattr(file, name) for name in kept}
