"""Looking for the command before anything is joined for it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import click

from zkelect.cli.exits import NOT_EXECUTABLE, NOT_FOUND

__all__ = ["NotFound", "NotStarted", "check_program", "not_started"]


class NotStarted(click.ClickException):
    """The command is there, and cannot be executed; the exit status is a shell's."""

    exit_code = NOT_EXECUTABLE


class NotFound(NotStarted):
    """There is no such command."""

    exit_code = NOT_FOUND


def not_started(program: str, number: int) -> NotStarted:
    """Return the error for a command that execve(2) refuses with this number."""
    if number == errno.ENOENT:
        return NotFound(f"{program}: not found")
    return NotStarted(f"{program}: {os.strerror(number)}")


def check_program(program: str) -> None:
    """Refuse a command that plainly cannot be started, as execvp(3) would look for it.

    :raises NotStarted: it is not there, or not executable.
    """
    places = [""] if "/" in program else os.get_exec_path()
    faults = {_fault(Path(place, program)) if program else errno.ENOENT for place in places}
    if 0 not in faults:
        denied = faults - {errno.ENOENT}
        raise not_started(program, min(denied, default=errno.ENOENT))


def _fault(path: Path) -> int:
    """Return the number of the error that executing the file would meet; 0: none is plain."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        number = error.errno or errno.EACCES
        return errno.ENOENT if number == errno.ENOTDIR else number
    if stat.S_ISDIR(mode):
        return errno.EISDIR
    return 0 if os.access(path, os.X_OK) else errno.EACCES
