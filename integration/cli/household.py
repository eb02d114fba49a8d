"""``zkelect run`` with all that comes of it, as processes that carry one mark."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import uuid
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from cli.command import Ended, Running
from election.waiting import WITHIN, boottime, until

from zkelect.cli.run.keeper.cgroups import find_own
from zkelect.cli.run.keeper.processes import children, look_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["HEART", "OWN_CGROUP", "Household", "await_death", "frozen", "stop", "without_cgroups"]

OWN_CGROUP: Final = find_own(
    Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
)
"""Where the groups of what we start are made; None on a machine without cgroup v2."""


HEART: Final = (sys.executable, str(Path(__file__).with_name("heart.py")))
"""A command that tells of each instant it lives."""

_VARIABLE: Final = "HOUSEHOLD"
_TIDYING: Final = 5.0
"""Seconds for a keeper to tidy up after its elector was killed, unless it is one that cannot."""


class Household:
    """A ``zkelect run`` and all that comes of it: they carry one mark in their environment.

    :param how: further arguments of Popen.
    :ivar run: the elector.
    """

    def __init__(
        self, hosts: str, *arguments: str, how: Mapping[str, Any] | None = None, **env: str | None
    ) -> None:
        self._mark = uuid.uuid4().hex
        marked = {"ZKELECT_HOSTS": hosts, _VARIABLE: self._mark, **env}
        self.run = Running(("run", *arguments), marked, **(how or {}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run.kill()
        tidied = boottime() + _TIDYING
        while self.living() and boottime() < tidied:
            time.sleep(0.01)
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @property
    def keeper(self) -> int:
        """Process id of the keeper, once it is there."""
        until(lambda: bool(children(self.run.process.pid)), "there is a keeper")
        (keeper,) = children(self.run.process.pid)
        return keeper

    def living(self) -> set[int]:
        """Return who is alive, elector and keeper included."""
        entry = f"{_VARIABLE}={self._mark}".encode()
        found = set()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it has ended
                if entry in path.read_bytes().split(b"\0"):
                    found.add(int(path.parent.name))
        return {pid for pid in found if (it := look_up(pid)) is not None and it.alive}

    @property
    def folder(self) -> Path:
        """Where its deadline is told; gone when it has ended."""
        words = Path(f"/proc/{self.keeper}/cmdline").read_bytes().split(b"\0")
        (folder,) = [word for word in words if b"/zkelect-run-" in word]
        return Path(os.fsdecode(folder))

    def await_none(self) -> None:
        """Wait until nobody is left."""
        until(lambda: not self.living(), f"{self.living()} are dead")

    def await_command(self, size: int) -> None:
        """Wait until so many processes have come of the command."""
        beside = 2  # elector and keeper
        until(lambda: len(self.living()) == size + beside, f"the command is {size} processes")

    def end(self) -> Ended:
        """Wait for the end; nobody may be left then."""
        ended = self.run.end()
        assert not self.living(), ended.err
        return ended


def stop(pid: int) -> None:
    """Stop a process, and wait until it stands still: the signal alone is only on its way."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: _state(pid) == "T", f"{pid} stands still")


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]


def await_death(pid: int) -> None:
    """Wait until a process that is not our child has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with closing(os.fdopen(descriptor, "rb", buffering=0)):
        ended, _, _ = select.select([descriptor], [], [], WITHIN)
        assert ended, f"process {pid} lives on"


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Let a process stand still, deaf to SIGCONT, as one that hangs in the kernel."""
    with _group() as group:
        (group / "cgroup.procs").write_text(str(pid))
        (group / "cgroup.freeze").write_text("1")
        yield
        await_death(pid)


@contextmanager
def without_cgroups() -> Iterator[Mapping[str, Any]]:
    """Yield arguments of Popen for a process that can make no control group of its own."""
    with _group() as group:
        (group / "cgroup.max.descendants").write_text("0")
        yield {"preexec_fn": lambda: (group / "cgroup.procs").write_text("0")}


@contextmanager
def _group() -> Iterator[Path]:
    assert OWN_CGROUP is not None, "this machine has no cgroup v2"
    group = OWN_CGROUP / f"zkelect-test-{uuid.uuid4().hex}"
    group.mkdir()
    try:
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text(), "all have left the group")
        group.rmdir()
