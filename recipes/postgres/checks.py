"""What must be so before an agent looks after a server; each refusal says what to change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect import InvalidArgument
from zkelect.recipes.clock import now
from zkelect.recipes.postgres.asking import NoAnswer, ask, connect, locate
from zkelect.recipes.postgres.lifecycle import APART, control, find_postmaster, start_alone
from zkelect.recipes.postgres.programs import ProgramFailed
from zkelect.recipes.postgres.rewinding import refuse_half_rewound
from zkelect.recipes.resource import NeedsRebuild, Unfit

if TYPE_CHECKING:
    from zkelect.recipes.postgres.place import Place

__all__ = ["check"]

_VERSION: Final = 15
_WHO: Final = "select current_setting('server_version_num')::int, current_setting('is_superuser')"
_DIRECTORY: Final = "select current_setting('data_directory')"
_KNOCK: Final = 3.0
_OURS: Final = (
    "default_transaction_read_only",
    "primary_conninfo",
    "primary_slot_name",
    "synchronous_standby_names",
)
_MUST_BE: Final = {
    "full_page_writes": ("on", "pg_rewind needs it"),
    "hot_standby": ("on", "a standby is asked for its position"),
    "recovery_target_timeline": ("latest", "a standby follows each new primary"),
}


def check(place: Place, deadline: float) -> None:
    """Look at the data, then at the server; one that is stopped, and a standby, is started.

    One that is being rewound is left alone: an agent before this one has looked at it, and to
    follow goes on with the rewinding, however long that takes.

    :raises Unfit: it cannot be looked after; the text says what to change.
    """
    if _is_being_rewound(place):
        return
    _check_data(place)
    if find_postmaster(place) is None:
        _refuse_unseen(place, deadline)
        _start(place, deadline)
    try:
        _check_server(place, deadline)
        _check_replication(place, deadline)
    except NoAnswer as error:
        raise Unfit(f"the server does not answer at {place.local!r}: {error}") from error
    if not control(place, deadline).rewindable:
        raise Unfit(
            "neither data checksums nor wal_log_hints: pg_rewind cannot take back what an old"
            " primary wrote too much; set wal_log_hints = on and restart the server, or stop it"
            " and run pg_checksums --enable"
        )


def _is_being_rewound(place: Place) -> bool:
    try:
        refuse_half_rewound(place)
    except NeedsRebuild as error:
        raise Unfit(str(error)) from error
    except ProgramFailed:
        return False  # nothing has been changed; when it is tried again, it says so again
    return place.rewinding.exists()


def _check_data(place: Place) -> None:
    try:
        version = place.version
    except InvalidArgument as error:
        raise Unfit(str(error)) from error
    if version != str(_VERSION):
        raise Unfit(
            f"{place.data_directory} is of PostgreSQL {version}; this recipe knows {_VERSION}"
        )
    try:
        place.program("pg_rewind")
    except InvalidArgument as error:
        raise Unfit(str(error)) from error
    user, _ = place.owner
    if os.geteuid() not in (0, user):
        raise Unfit(f"{place.data_directory} belongs to user {user}; run the agent as that user")


def _refuse_unseen(place: Place, deadline: float) -> None:
    """A server that answers, and whose process nobody sees here, could not be killed."""
    try:
        (directory,) = ask(place.local, _DIRECTORY, min(deadline, now() + _KNOCK))
    except NoAnswer:
        return
    raise Unfit(
        f"a server answers at {place.local!r}, with its data in {directory}, and none that has"
        f" {place.data_directory} is to be seen here: correct one of the two, or run the agent on"
        " the server's host, and in the same container or pod with a shared process space"
    )


def _start(place: Place, deadline: float) -> None:
    if not place.signal.exists():
        raise Unfit(
            f"the server of {place.data_directory} does not run, and was no standby; start it"
            " yourself if its data may be served, then the agent"
        )
    start_alone(place, deadline)  # an old primary may have WAL that its archive knows nothing of


def _check_server(place: Place, deadline: float) -> None:
    number, superuser = ask(place.local, _WHO, deadline)
    if number // 10000 != _VERSION:
        raise Unfit(f"the server at {place.local!r} is {number}; this recipe knows {_VERSION}")
    if superuser != "on":
        raise Unfit(f"{place.local!r} is no superuser; name one, as pg_rewind and checkpoints need")
    (directory,) = ask(place.local, _DIRECTORY, deadline)
    if Path(directory).resolve() != place.data_directory.resolve():
        raise Unfit(
            f"the server at {place.local!r} has its data in {directory}, not in"
            f" {place.data_directory}: correct one of the two"
        )
    _check_settings(place, deadline)


def _check_settings(place: Place, deadline: float) -> None:
    with connect(place.local, deadline) as connection:
        rows = connection.execute("select name, setting, source from pg_settings").fetchall()
    settings = {name: (value, source) for name, value, source in rows}
    # As we start an old primary until it is rewound; its files say what it is afterwards.
    apart = all(settings[name] == (value, "command line") for name, value in APART.items())
    for name, (wanted, why) in _MUST_BE.items():
        if settings[name][0] != wanted and not (apart and name in APART):
            raise Unfit(f"{name} is {settings[name][0]!r}; set it to {wanted!r}: {why}")
    for name in _OURS:
        if settings[name][1] == "command line":
            raise Unfit(f"{name} is on the command line of the server; take it off: we change it")


def _check_replication(place: Place, deadline: float) -> None:
    try:
        locate(place.local, deadline)
    except NoAnswer as error:
        raise Unfit(
            f"a replication connection to {place.local!r} is refused ({error}); the role needs"
            " REPLICATION, pg_hba.conf a line for database 'replication', and max_wal_senders room"
        ) from error
