"""A standby becomes the primary: promoted while it is closed, looked at, and opened last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.postgres.asking import ask, connect, locate
from zkelect.recipes.postgres.gate import CLOSED, open_for_writes
from zkelect.recipes.postgres.lifecycle import mark_as_standby
from zkelect.recipes.postgres.settings import apply
from zkelect.recipes.postgres.state import read_state
from zkelect.recipes.postgres.timelines import timeline_of

if TYPE_CHECKING:
    from zkelect.recipes.position import Position
    from zkelect.recipes.postgres.place import Place

__all__ = ["become_primary", "checkpoint", "is_primary", "let_writers_in"]

# It waits for nobody yet: who has to confirm is decided before it is opened.
_BEFORE: Final = {
    "primary_conninfo": "",
    "primary_slot_name": "",
    "synchronous_standby_names": "",
    **CLOSED,
}
_TIMELINE: Final = "select timeline_id from pg_control_checkpoint()"


def is_primary(place: Place, deadline: float) -> bool:
    """Tell whether the server is out of recovery."""
    return not read_state(place, deadline).standby


def become_primary(place: Place, deadline: float) -> Position:
    """Promote the standby, closed; a primary stays what it is.

    :raises NotNow: it has not come out of recovery by the deadline.
    """
    if not is_primary(place, deadline):
        apply(place, _BEFORE, deadline)
        ask(place.local, "select pg_promote(false)", deadline)  # to wait there takes steps of 0.1 s
        wait_until(lambda: is_primary(place, deadline), deadline, "it has come out of recovery")
    mark_as_standby(place)  # promotion has taken the mark away
    return locate(place.local, deadline)


def let_writers_in(place: Place, deadline: float) -> Position:
    """Open the primary; afterwards others may rewind from it."""
    mark_as_standby(place)
    open_for_writes(place, deadline)
    checkpoint(place.local, deadline)
    return locate(place.local, deadline)


def checkpoint(conninfo: str, deadline: float) -> None:
    """Have the control file tell the present timeline.

    pg_rewind reads it there, and after a promotion finds the old one until the first checkpoint.
    """
    present = timeline_of(locate(conninfo, deadline))
    if ask(conninfo, _TIMELINE, deadline) != (present,):
        with connect(conninfo, deadline) as connection:
            connection.execute("CHECKPOINT")
