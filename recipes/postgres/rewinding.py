"""An old primary's extra WAL is taken back by pg_rewind, or the server must be made anew.

A pg_rewind that was interrupted leaves data that nobody can use (pg_rewind, "Warnings"). So it is
never cut short by a deadline, it runs on when this process ends, and its traces are in a file
beside the data until the server has been started on what it made.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import left
from zkelect.recipes.postgres.asking import ask
from zkelect.recipes.postgres.lifecycle import control, mark_as_standby, stop
from zkelect.recipes.postgres.programs import identity, run
from zkelect.recipes.postgres.promoting import checkpoint
from zkelect.recipes.postgres.settings import write_file
from zkelect.recipes.resource import NeedsRebuild, NotNow

if TYPE_CHECKING:
    from zkelect.recipes.postgres.place import Place

__all__ = ["Rewinding", "refuse_half_rewound"]

_ARCHIVE: Final = """
select (select setting from pg_file_settings where name = 'restore_command'
        order by seqno desc limit 1),
       current_setting('config_file')
"""
_CONFIGURATION: Final = ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf")


class Rewinding:
    """The rewinding of one server; :meth:`advance` is called until it does not raise."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._running: subprocess.Popen[bytes] | None = None
        self._kept: dict[str, str] = {}

    @property
    def begun(self) -> bool:
        """Whether one of ours is under way."""
        return self._running is not None

    def advance(self, source: str, deadline: float) -> None:
        """Rewind the server to the source's history; afterwards it is stopped.

        :param source: the connection string of the primary, which is open.
        :raises NotNow: it goes on; ask again.
        :raises NeedsRebuild: it cannot be, or went wrong.
        :raises ProgramFailed: it would not work, and nothing has been changed.
        """
        if self._running is None:
            self._begin(source, deadline)
        self._await(deadline)

    def _begin(self, source: str, deadline: float) -> None:
        place = self._place
        if not control(place, deadline).rewindable:
            raise NeedsRebuild(
                "it has WAL that the primary does not have, and pg_rewind needs data checksums or"
                " wal_log_hints=on, which must have been on before; copy it anew: pg_basebackup"
            )
        arguments = (
            f"--source-server={source}",
            "--no-ensure-shutdown",
            *_archive(place, deadline),
        )
        stop(place, deadline)
        checkpoint(source, deadline)
        run(place, "pg_rewind", *arguments, "--dry-run", deadline=deadline)
        self._kept = _configuration(place)
        self._running = self._launch(*arguments)

    def _launch(self, *arguments: str) -> subprocess.Popen[bytes]:
        place = self._place
        write_file(place, place.rewinding, "")
        command = [place.program("pg_rewind"), "-D", str(place.data_directory), *arguments]
        with place.rewinding.open("ab") as trace:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=trace,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,  # no signal to this process's group cuts it short
                **identity(place),
            )

    def _await(self, deadline: float) -> None:
        assert self._running is not None
        try:
            status = self._running.wait(left(deadline))
        except subprocess.TimeoutExpired as error:
            raise NotNow("pg_rewind is still at work") from error
        self._running = None
        if status != 0:
            refuse_half_rewound(self._place)
        for name, text in self._kept.items():
            write_file(self._place, self._place.data_directory / name, text)
        mark_as_standby(self._place)
        self._place.rewinding.unlink()


def refuse_half_rewound(place: Place) -> None:
    """Raise if a rewinding began here and is not known to have ended well.

    :raises NeedsRebuild: with what pg_rewind said.
    """
    try:
        printed = place.rewinding.read_text("utf-8", "replace")
    except FileNotFoundError:
        return
    raise NeedsRebuild(
        f"a pg_rewind was interrupted or failed: {' '.join(printed.split()) or 'it said nothing'};"
        f" copy it anew with pg_basebackup, then delete {place.rewinding}"
    )


def _archive(place: Place, deadline: float) -> tuple[str, ...]:
    """Return the options that let pg_rewind fetch WAL that is not there any more.

    It reads back to where the histories part, and finds the command in the server's files.
    """
    command, config = ask(place.local, _ARCHIVE, deadline)
    return ("--restore-target-wal", f"--config-file={config}") if command else ()


def _configuration(place: Place) -> dict[str, str]:
    """Return the configuration in the data directory: pg_rewind replaces it by the source's."""
    files = {name: place.data_directory / name for name in _CONFIGURATION}
    return {name: file.read_text("utf-8") for name, file in files.items() if file.exists()}
