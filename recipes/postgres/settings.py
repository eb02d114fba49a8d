"""Settings that outlive a restart: our lines of ``postgresql.auto.conf``.

That file wins over postgresql.conf (PostgreSQL, "Parameter Interaction via the Configuration
File"), and is there whether the server runs or not. ALTER SYSTEM would need a server that runs;
so the file is written as ALTER SYSTEM does it, and a server that runs is told to read it again.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.postgres.asking import ask, connect
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from zkelect.recipes.postgres.place import Place

__all__ = ["apply", "edited", "quoted", "read_settings", "write_file", "write_settings"]

_LINE: Final = re.compile(r"\s*(\w+)\s*=")
_LOADED: Final = "select extract(epoch from pg_conf_load_time())::float8"

_EFFECTIVE: Final = "select name, reset_val from pg_settings where name = any(%s)"


def edited(text: str, settings: Mapping[str, str]) -> str:
    """Return the file's text with these settings in place of what it says of them."""
    lines = text.removesuffix("\n").split("\n") if text else []
    kept = [line for line in lines if _name(line) not in settings]
    ours = [f"{name} = {quoted(value)}" for name, value in settings.items()]
    return "\n".join((*kept, *ours, ""))


def quoted(value: str) -> str:
    """Return a value as the file has it, where a backslash begins an escape."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def write_settings(place: Place, settings: Mapping[str, str]) -> None:
    """Write settings into the file, for the next start or reload.

    Other lines stay as they are: ALTER SYSTEM writes in the encoding of its database.
    """
    try:
        text = place.settings.read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        text = ""
    if (new := edited(text, settings)) != text:
        write_file(place, place.settings, new.encode("utf-8", "surrogateescape"))


def write_file(
    place: Place, path: Path, content: bytes, like: os.stat_result | None = None
) -> None:
    """Replace a file of the server's in one step, forced to the disk.

    :param like: whose owner and mode it gets; None: the owner of the data alone has it.
    """
    draft = path.with_name(f"{path.name}.zkelect")
    with draft.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        _give_away(place, file.fileno(), like)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _give_away(place: Place, file: int, like: os.stat_result | None) -> None:
    if like is None:
        if os.geteuid() == 0:
            os.fchown(file, *place.owner)
        return
    try:
        os.fchown(file, like.st_uid, like.st_gid)
    except PermissionError:
        return  # it is ours now: PostgreSQL refuses a key of its own that others may read
    os.fchmod(file, stat.S_IMODE(like.st_mode))


def apply(place: Place, settings: Mapping[str, str], deadline: float) -> None:
    """Write settings, and have the server that runs take them; return when it has.

    New sessions have them then. Those that were there follow as soon as they are idle.

    :raises Unfit: something that wins over the file says otherwise.
    """
    write_settings(place, settings)
    before, _ = ask(place.local, f"{_LOADED}, pg_reload_conf()", deadline)
    # The postmaster reads the file first, and a session inherits the time from it.
    # Another time, not a later one: the host's clock may be set back.
    wait_until(lambda: ask(place.local, _LOADED, deadline)[0] != before, deadline, "settings read")
    found = read_settings(place, settings, deadline)
    for name, value in settings.items():
        if found[name] != value:
            raise Unfit(
                f"{name} is {found[name]!r} although {place.settings} says {value!r}: take it off"
                " the command line of the server, and off ALTER ROLE and ALTER DATABASE"
            )


def read_settings(place: Place, names: Iterable[str], deadline: float) -> dict[str, str]:
    """Return what settings are for everybody: not by this session's own options."""
    with connect(place.local, deadline) as connection:
        return dict(connection.execute(_EFFECTIVE, (list(names),)).fetchall())


def _name(line: str) -> str:
    found = _LINE.match(line)
    return found[1] if found else ""
