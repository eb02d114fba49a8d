"""An old primary's extra WAL is taken back by pg_rewind, or the server must be made anew.

A pg_rewind that was interrupted leaves data that nobody can use (pg_rewind, "Warnings"). So it is
never cut short by a deadline, it runs on when this process ends, and its traces are in a file
beside the data until the server may be started on what it made. Another agent goes on with it.

All files that are not of relations become the source's, so ours are kept beside the data, too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.postgres.asking import ask
from zkelect.recipes.postgres.lifecycle import control, find_postmaster, mark_as_standby, stop
from zkelect.recipes.postgres.programs import ProgramFailed, identity
from zkelect.recipes.postgres.promoting import checkpoint
from zkelect.recipes.postgres.settings import write_file
from zkelect.recipes.resource import NeedsRebuild

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from zkelect.recipes.postgres.place import Place

__all__ = ["Rewinding", "refuse_half_rewound"]

_ARCHIVE: Final = """
select (select setting from pg_file_settings where name = 'restore_command'
        order by seqno desc limit 1),
       current_setting('config_file')
"""
_USED: Final = """
select array(select sourcefile from pg_file_settings where sourcefile is not null
             union
             select setting from pg_settings where setting <> '' and name in (
                 'config_file', 'hba_file', 'ident_file', 'krb_server_keyfile', 'ssl_ca_file',
                 'ssl_cert_file', 'ssl_crl_file', 'ssl_dh_params_file', 'ssl_key_file'))
"""
_LEAST: Final = ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf")

# Lines of the trace besides pg_rewind's own.
_TRIED: Final = "zkelect: nothing is changed yet"
_BEGUN: Final = "zkelect: from here on data are changed"
_ENDED: Final = "zkelect: it has ended well"
# The second line is on the disk before anything is changed, also when the power fails.
_WORK: Final = f"""
"$@" --dry-run && echo "{_BEGUN}" && sync "$0" && "$@" && echo "{_ENDED}"
"""


class Rewinding:
    """The rewinding of one server; :meth:`advance` is called until it does not raise."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def begun(self) -> bool:
        """Whether one is under way, by whatever agent it was begun."""
        return self._place.rewinding.exists()

    def advance(self, source: str, deadline: float) -> None:
        """Rewind the server to the source's history; afterwards it is stopped.

        :param source: the connection string of the primary, which is open.
        :raises NotNow: it goes on; ask again.
        :raises NeedsRebuild: it cannot be, or went wrong.
        :raises ProgramFailed: it would not work, and nothing has been changed.
        """
        if not self.begun:
            self._begin(source, deadline)
        self._await(deadline)
        refuse_half_rewound(self._place)
        _give_back(self._place)
        mark_as_standby(self._place)
        _forget(self._place)

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
        _keep(place, _used(place, deadline))  # while it runs: what cannot be kept does not stop it
        stop(place, deadline)
        checkpoint(source, deadline)
        self._child = self._launch(*arguments)

    def _launch(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Try it, then do it, in the background: both read all WAL since the histories part."""
        place = self._place
        write_file(place, place.rewinding, f"{_TRIED}\n".encode())
        program = [place.program("pg_rewind"), "-D", str(place.data_directory), *arguments]
        with place.rewinding.open("ab") as trace:
            fcntl.flock(trace, fcntl.LOCK_EX)  # the child inherits it: held as long as that runs
            return subprocess.Popen(
                ["/bin/sh", "-c", _WORK, str(place.rewinding), *program],
                stdin=subprocess.DEVNULL,
                stdout=trace,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,  # no signal to this process's group cuts it short
                **identity(place),
            )

    def _await(self, deadline: float) -> None:
        wait_until(lambda: not _is_at_work(self._place), deadline, "pg_rewind has ended")
        if self._child is not None:
            self._child.wait()
            self._child = None


def refuse_half_rewound(place: Place) -> None:
    """Raise if a rewinding began here, is not at work any more, and did not end well.

    One of which only the trial was made is forgotten.

    :raises NeedsRebuild: with what pg_rewind said.
    :raises ProgramFailed: it was forgotten; with what pg_rewind said.
    """
    works = _is_at_work(place)  # first: what it prints after this is of no account
    try:
        printed = place.rewinding.read_text("utf-8", "replace")
    except FileNotFoundError:
        return
    said = " ".join(printed.rpartition(_BEGUN)[2].split()) or "it said nothing"
    why = f"a pg_rewind was interrupted or failed: {said}"
    if works or printed.endswith(f"{_ENDED}\n"):
        if find_postmaster(place) is None:
            return
        why = "the server was started while a pg_rewind was at work on its data"
    elif printed.startswith(_TRIED) and _BEGUN not in printed:
        _forget(place)
        raise ProgramFailed("pg_rewind --dry-run", 1, printed.removeprefix(_TRIED))
    raise NeedsRebuild(
        f"{why}; copy it anew with pg_basebackup, then delete {place.rewinding}, and {_kept(place)}"
        " when you need nothing of its old configuration any more"
    )


def _forget(place: Place) -> None:
    """Take away the traces: the last one of them last."""
    shutil.rmtree(_kept(place), ignore_errors=True)
    place.rewinding.unlink()


def _is_at_work(place: Place) -> bool:
    """Tell whether a pg_rewind runs, by the lock that it has inherited."""
    try:
        with place.rewinding.open("rb") as trace:
            fcntl.flock(trace, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _archive(place: Place, deadline: float) -> tuple[str, ...]:
    """Return the options that let pg_rewind fetch WAL that is not there any more.

    It reads back to where the histories part, and finds the command in the server's files.
    """
    command, config = ask(place.local, _ARCHIVE, deadline)
    return ("--restore-target-wal", f"--config-file={config}") if command else ()


# --- the files that are kept ----------------------------------------------------------------------


def _used(place: Place, deadline: float) -> set[Path]:
    """Return what of the server's configuration, certificates and keys is with its data.

    The server itself names the files; one that does not answer is not rewound yet. It names no
    file in which nothing is set, but would miss it: so all ``*.conf`` beside a named one count.
    """
    home = place.data_directory.resolve()
    (named,) = ask(place.local, _USED, deadline)
    files = {part for name in (*_LEAST, *named) for part in _within(home, home / name)}
    beside = {conf for folder in {file.parent for file in files} for conf in folder.glob("*.conf")}
    return files | {part for conf in beside for part in _within(home, conf)}


def _within(home: Path, path: Path) -> Iterator[Path]:
    """Yield what of a path is in that directory: symbolic links on the way, and the file."""
    for step in (*path.parents, path):
        if step.is_symlink() and (folder := step.parent.resolve()).is_relative_to(home):
            yield folder / step.name
    if path.is_file() and (file := path.resolve()).is_relative_to(home):
        yield file


def _kept(place: Place) -> Path:
    """Return the folder of what is kept, where pg_rewind does not delete it."""
    return place.data_directory.with_name(f"{place.data_directory.name}.kept")


def _keep(place: Place, files: Iterable[Path]) -> None:
    home, kept = place.data_directory.resolve(), _kept(place)
    if kept.exists():
        shutil.rmtree(kept)
    _make_folder(place, kept)
    for file in files:
        _copy(place, file, kept / file.relative_to(home))


def _give_back(place: Place) -> None:
    kept = _kept(place)
    for copy in sorted(kept.rglob("*")):
        if copy.is_symlink() or copy.is_file():
            _copy(place, copy, place.data_directory / copy.relative_to(kept))


def _copy(place: Place, file: Path, copy: Path) -> None:
    """Copy a file with its owner and mode; a link stays one, to where it points."""
    _make_folder(place, copy.parent)
    if not file.is_symlink():
        write_file(place, copy, file.read_bytes(), file.stat())
        return
    draft = copy.with_name(f"{copy.name}.zkelect")
    draft.unlink(missing_ok=True)
    draft.symlink_to(file.readlink())
    draft.replace(copy)


def _make_folder(place: Place, folder: Path) -> None:
    """Make a folder, and those above it, that only the owner of the data may look into."""
    if folder.is_dir():
        return
    _make_folder(place, folder.parent)
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(folder, *place.owner)
