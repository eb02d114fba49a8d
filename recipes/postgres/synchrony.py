"""Synchronous mode: whose confirmation the primary waits for before it confirms a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.postgres.asking import ask, connect
from zkelect.recipes.postgres.settings import apply, read_settings
from zkelect.recipes.resource import NotNow, Unfit

if TYPE_CHECKING:
    from collections.abc import Collection

    from zkelect.recipes.postgres.place import Place

__all__ = ["confirmed", "standby_names", "wait_for_all"]

_SETTING: Final = "synchronous_standby_names"
_COMMIT: Final = "synchronous_commit"
_WAITS: Final = ("on", "remote_apply")
"""Else a commit is confirmed before others have it on their disks (PostgreSQL, "WAL Settings")."""
_FLUSHED: Final = "select pg_current_wal_flush_lsn()::text"
# PostgreSQL waits for any one that has the name, in upper or lower case: of two nobody knows
# which, and one may be a copy of the other that no agent looks after.
_HAVE: Final = (
    "select min(application_name) from pg_stat_replication where state = 'streaming'"
    " group by lower(application_name) having count(*) = 1 and min(flush_lsn) >= %s::pg_lsn"
)
_ATTACHED: Final = (
    "select count(*) from (select from pg_stat_replication where state = 'streaming'"
    " group by lower(application_name) having count(*) = 1) as those"
)


def standby_names(names: Collection[str]) -> str:
    """Return the setting that waits for every one of these standbys, and for nobody when empty."""
    if not names:
        return ""
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in sorted(names))
    return f"FIRST {len(names)} ({listed})"


def wait_for_all(place: Place, names: Collection[str], deadline: float) -> None:
    """From the return on, confirm a commit only when all of these have it on their disks.

    Whether commits wait at all is told to them by the checkpointer, which reads the settings
    when it likes, and not before a checkpoint that is under way has ended. It has read them
    before it begins the next one.

    :raises NotNow: that takes longer; nothing is known then.
    :raises Unfit: commits would not wait, by what is set for all sessions.
    """
    found = read_settings(place, [_SETTING, _COMMIT], deadline)
    if names and found[_COMMIT] not in _WAITS:
        raise Unfit(_told(found[_COMMIT]))
    waited = found[_SETTING] != ""
    apply(place, {_SETTING: standby_names(names)}, deadline)
    if names and not waited:
        with connect(place.local, deadline) as connection:
            connection.execute("CHECKPOINT")


def confirmed(place: Place, deadline: float) -> frozenset[str]:
    """Return who streams and has everything that the primary had when this was called.

    Under a busy writer nobody has everything at any instant, so they get a moment to receive it.
    Nobody has what was confirmed when commits do not wait any more.

    :raises Unfit: commits do not wait, and nobody is waited for: nobody is left to strike off.
    """
    found = read_settings(place, [_SETTING, _COMMIT], deadline)
    if found[_COMMIT] not in _WAITS:
        if found[_SETTING] == "":
            raise Unfit(_told(found[_COMMIT]))
        return frozenset()
    (flushed,) = ask(place.local, _FLUSHED, deadline)
    (attached,) = ask(place.local, _ATTACHED, deadline)
    try:
        wait_until(
            lambda: len(_holders(place, flushed, deadline)) >= attached, deadline, "confirmed"
        )
    except NotNow:  # some have not, and are not named
        return _holders(place, flushed, deadline + 1)
    return _holders(place, flushed, deadline)


def _told(commit: str) -> str:
    return (
        f"{_COMMIT} is {commit!r}: commits are confirmed before the standbys have them; set it to"
        " 'on' or 'remote_apply', or leave synchronous mode"
    )


def _holders(place: Place, flushed: str, deadline: float) -> frozenset[str]:
    with connect(place.local, deadline) as connection:
        return frozenset(name for (name,) in connection.execute(_HAVE, (flushed,)))
