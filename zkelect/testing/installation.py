"""Puts ZooKeeper and Java on a Debian or Ubuntu machine, when asked to."""

from __future__ import annotations

import collections
import logging
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.errors import Unreachable
from zkelect.testing.distribution import (
    INSTALL_COMMANDS,
    Distribution,
    ServerNotFound,
    find_server,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["InstallFailed", "install"]

_PROC: Final = Path("/proc/self")
_log: Final = logging.getLogger(__name__)

# Wait for another apt on this machine to finish instead of failing beside it.
_APT_OPTIONS: Final = ("-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3")


class InstallFailed(Unreachable):
    """ZooKeeper could not be installed.

    :ivar command: what was run, or would have been. :ivar problem: what went wrong.
    """

    def __init__(self, command: str, problem: str) -> None:
        self.command = command
        self.problem = problem
        super().__init__(f"ZooKeeper was not installed: {command}: {problem}")


def install(progress: Callable[[str], None] = _log.info) -> Distribution:
    """Make sure that this machine has a ZooKeeper server, by apt-get if it must be.

    Does nothing when :func:`find_server` finds one. Otherwise runs what
    :class:`ServerNotFound` says to type; about 95 MB are fetched on a bare machine.

    :param progress: is given each line that apt-get prints; default: the log.
    :returns: the server found or installed.
    :raises ServerNotFound: not root, or neither Debian nor Ubuntu: it says what to type.
    :raises InstallFailed: apt-get failed; its last lines are in the message.
    """
    try:
        return find_server()
    except ServerNotFound as missing:
        _check_that_apt_can_run(missing)
    for command in INSTALL_COMMANDS:
        _run(command, progress)
    return find_server()


def _check_that_apt_can_run(missing: ServerNotFound) -> None:
    if shutil.which("apt-get") is None:
        raise ServerNotFound({**missing.looked, "install": "this machine has no apt-get"})
    if os.geteuid() != 0:
        raise ServerNotFound({**missing.looked, "install": "only root can run apt-get"})
    # openjdk's installation script refuses to go on without it, halfway through apt's work.
    if not _PROC.exists():
        raise InstallFailed("mount -t proc proc /proc", "Java needs /proc; type this first")


def _run(command: Sequence[str], progress: Callable[[str], None]) -> None:
    line = " ".join(command)
    progress(f"$ {line}")
    last = collections.deque[str](maxlen=15)
    with subprocess.Popen(
        [command[0], *_APT_OPTIONS, *command[1:]],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for text in process.stdout or ():
            last.append(text.rstrip())
            progress(text.rstrip())
    if process.returncode != 0:
        raise InstallFailed(line, f"exit status {process.returncode}\n" + "\n".join(last))
