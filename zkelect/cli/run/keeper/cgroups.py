"""A control group for the command: whoever is born in it, stays, and one write kills all.

It needs the unified hierarchy (cgroup v2), wherever it is mounted, and the right to make a group
below our own: as root, or where systemd delegates it (``Delegate=yes``). cgroup.kill came with
Linux 5.14; Documentation/admin-guide/cgroup-v2.rst has the rules.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final, Self

__all__ = ["Cgroup", "find_own"]

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


def find_own(mountinfo: str, membership: str) -> Path | None:
    """Return the folder of our own control group in the unified hierarchy, None without one.

    :param mountinfo: of /proc/self/mountinfo (proc_pid_mountinfo(5)): hybrid machines have the
        hierarchy beside those of cgroup v1, in a container only a part of it may be mounted.
    :param membership: of /proc/self/cgroup (cgroups(7)).
    """
    own = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), None)
    if own is None:
        return None
    folders = (_folder(line, PurePosixPath(own)) for line in mountinfo.splitlines())
    return next((folder for folder in folders if folder is not None), None)


def _folder(line: str, own: PurePosixPath) -> Path | None:
    mounted, _, how = line.partition(" - ")
    fields = mounted.split()
    if how.split()[:1] != ["cgroup2"] or ".." in own.parts:
        return None
    root, point = PurePosixPath(_plain(fields[3])), Path(_plain(fields[4]))
    return point / own.relative_to(root) if own.is_relative_to(root) else None


def _plain(field: str) -> str:
    """Undo the kernel's escapes of spaces and the like."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), field)


class Cgroup:
    """The group of one keeper.

    :ivar path: its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path

    @classmethod
    def make(cls, name: str) -> Self:
        """Make one below our own.

        :raises OSError: there is no unified hierarchy here, or we have no right to it.
        """
        proc = Path("/proc/self")
        own = find_own((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
        if own is None:
            raise FileNotFoundError("no unified hierarchy (cgroup v2) is mounted here")
        group = cls(own / name)
        group.path.mkdir()
        try:
            group._check()
        except OSError:
            group.remove()
            raise
        return group

    def join(self) -> None:
        """Put this very process into it."""
        (self.path / "cgroup.procs").write_text("0")

    def kill(self) -> None:
        """Kill all that are in it, also those being born, whoever they belong to."""
        with suppress(FileNotFoundError):  # it was removed: nobody is in it
            (self.path / "cgroup.kill").write_text("1")

    def members(self) -> set[int]:
        """Return who is in it, and in groups that they made within; no zombies."""
        found: set[int] = set()
        for folder, _, _ in os.walk(self.path):
            with suppress(OSError):  # a group within has just gone, or is threaded
                found.update(map(int, (Path(folder) / "cgroup.procs").read_text().split()))
        return found

    @property
    def populated(self) -> bool:
        """Whether anybody in it lives."""
        try:
            return "populated 1" in (self.path / "cgroup.events").read_text()
        except FileNotFoundError:
            return False

    def remove(self) -> None:
        """Remove it, with the groups within; harmless while somebody lives in it."""
        for folder, _, _ in os.walk(self.path, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()

    def _check(self) -> None:
        """Refuse what could not be joined, or not be killed."""
        kind = (self.path / "cgroup.type").read_text().strip()
        if kind != "domain":
            raise OSError(f"{self.path} would be {kind}")
        for name in ("cgroup.kill", "cgroup.procs"):
            if not os.access(self.path / name, os.W_OK):
                raise PermissionError(f"{self.path / name} cannot be written (Linux before 5.14?)")
