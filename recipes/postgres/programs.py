"""PostgreSQL's own programs, run as the owner of the data and ended by a deadline."""

from __future__ import annotations

import os
import pwd
import subprocess
from typing import TYPE_CHECKING, Any

from zkelect import ZkelectError
from zkelect.recipes.deadlines import left
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from zkelect.recipes.postgres.place import Place

__all__ = ["ProgramFailed", "identity", "run"]


class ProgramFailed(ZkelectError):
    """One of PostgreSQL's programs ended with an error.

    :ivar program: its name. :ivar status: its exit status. :ivar printed: what it said.
    """

    def __init__(self, program: str, status: int, printed: str) -> None:
        self.program = program
        self.status = status
        self.printed = printed
        super().__init__(f"{program} ended with status {status}: {printed.strip()}")


def run(place: Place, name: str, *arguments: str, deadline: float) -> str:
    """Run a program on the data directory; return what it printed.

    :raises NotNow: it did not end by the deadline; it was killed.
    :raises ProgramFailed: its exit status was not 0.
    """
    command = [place.program(name), "-D", str(place.data_directory), *arguments]
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=left(deadline),
            cwd="/",
            env={**os.environ, "LC_ALL": "C"},
            **identity(place),
        )
    except subprocess.TimeoutExpired as error:
        raise NotNow(f"{name} did not end in time") from error
    if done.returncode != 0:
        raise ProgramFailed(name, done.returncode, done.stdout)
    return done.stdout


def identity(place: Place) -> dict[str, Any]:
    """Return the arguments of a subprocess that make root the owner of the data.

    PostgreSQL's programs refuse to run as root.
    """
    if os.geteuid() != 0:
        return {}
    user, group = place.owner
    groups = os.getgrouplist(pwd.getpwuid(user).pw_name, group)
    return {"user": user, "group": group, "extra_groups": groups}
