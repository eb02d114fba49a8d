"""Starting and stopping a server: it starts as a standby, always.

``standby.signal`` lies in the data directory of every server, of the primary too: PostgreSQL
looks for it only when it starts. So a primary that comes back, by its init system, by hand, or
by itself after a crash of one of its processes, comes back as a standby and takes no writes.
"""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import left, wait_until
from zkelect.recipes.postgres.controldata import ControlData
from zkelect.recipes.postgres.gate import CLOSED
from zkelect.recipes.postgres.processes import find_roots, kill_tree, works_in
from zkelect.recipes.postgres.programs import ProgramFailed, run
from zkelect.recipes.postgres.settings import write_file, write_settings
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from zkelect.recipes.postgres.place import Place

__all__ = [
    "APART",
    "bar",
    "control",
    "find_postmaster",
    "kill",
    "mark_as_standby",
    "start",
    "start_alone",
    "stop",
]

APART: Final = {"restore_command": "", "recovery_target_timeline": "current"}
"""On the command line of a server that is started alone, when it does not start without."""
_ALONE: Final = {"primary_conninfo": "", "primary_slot_name": "", **CLOSED}


def find_postmaster(place: Place) -> int | None:
    """Return the process of the server that has this data directory, None when there is none.

    Its file may have been deleted: then it takes writes for up to a minute, until it notices.
    """
    pid, home = _read_pid(place), place.data_directory.resolve()
    if pid is not None and works_in(pid, home):
        return pid
    return next(iter(find_roots(home)), None)


def bar(place: Place) -> None:
    """See to it that the server, when it starts, is a standby that follows nobody and is closed."""
    mark_as_standby(place)
    write_settings(place, _ALONE)


def mark_as_standby(place: Place) -> None:
    """Leave the mark that makes the server start as a standby."""
    if not place.signal.exists():
        write_file(place, place.signal, b"")


def start_alone(place: Place, deadline: float) -> None:
    """Start the server as a standby that is to tell what it has.

    With WAL of its own that its successor does not have, it does not start when it finds the
    successor's history in the archive ("requested timeline is not a child of this server's
    history"), and could not even be rewound. So then it is started for once without the archive,
    on its own timeline.

    :raises NotNow: it cannot be by the deadline, and is still at it.
    """
    try:
        start(place, deadline)
    except ProgramFailed:
        apart = (("-c", f"{name}={value}") for name, value in APART.items())
        start(place, deadline, *chain.from_iterable(apart))


def start(place: Place, deadline: float, *options: str) -> None:
    """Start the server as a standby, and wait until it can be asked.

    :param options: for this time, besides those of the place.
    :raises NotNow: it cannot be by the deadline, and is still at it; or a rewinding has begun,
        and its data are of use to nobody before that has ended and the server follows.
    """
    if place.rewinding.exists():
        raise NotNow(
            f"a pg_rewind of {place.data_directory} is at work, or was interrupted: see"
            f" {place.rewinding}; the server is started again when it follows"
        )
    if find_postmaster(place) is not None:
        return
    mark_as_standby(place)
    wait_until(lambda: not _is_left_behind(place), deadline, "the server's last process is reaped")
    seconds = max(int(left(deadline)), 1)
    options = (*place.options, *options)
    given = ("-o", shlex.join(options)) if options else ()
    run(place, "pg_ctl", "start", "-w", "-t", str(seconds), "-l", str(place.log_file), *given,
        deadline=deadline + 1)  # fmt: skip


def stop(place: Place, deadline: float) -> None:
    """Stop it in order ("fast"): a primary first sends its standbys all it has.

    :raises NotNow: it has not ended by the deadline.
    """
    pid = find_postmaster(place)
    if pid is None:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    wait_until(lambda: find_postmaster(place) is None, deadline, "the server has stopped")


def kill(place: Place) -> None:
    """End it and each process of its at once, frozen or not; return when they have ended.

    It recovers at its next start, as after a power cut.
    """
    kill_tree(place.data_directory.resolve(), _read_pid(place))


def control(place: Place, deadline: float) -> ControlData:
    """Read the control file."""
    return ControlData.parse(run(place, "pg_controldata", deadline=deadline))


def _read_pid(place: Place) -> int | None:
    try:
        return int((place.data_directory / "postmaster.pid").read_text("ascii").split("\n", 1)[0])
    except (OSError, ValueError):
        return None  # no file, or half a file


def _is_left_behind(place: Place) -> bool:
    """Tell whether the last server is dead but not reaped: PostgreSQL takes that for alive.

    In a container we may be the one who has to reap it.
    """
    pid = _read_pid(place)
    if pid is None:
        return False
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state == "Z"
