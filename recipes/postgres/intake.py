"""What a standby takes in: stopped before positions are compared, applied before it is promoted."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.position import Relation, compare
from zkelect.recipes.postgres.asking import locate
from zkelect.recipes.postgres.records import is_torn
from zkelect.recipes.postgres.settings import apply
from zkelect.recipes.postgres.state import State, read_state
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from zkelect.recipes.position import Position
    from zkelect.recipes.postgres.place import Place

__all__ = ["apply_received", "stop_intake", "wait_received"]


def wait_received(place: Place, until: Position, deadline: float) -> None:
    """Wait until the standby has all of that, on its disk."""

    def has_it() -> bool:
        return compare(locate(place.local, deadline), until) in (Relation.EQUAL, Relation.AHEAD)

    wait_until(has_it, deadline, f"received up to {until}")


def stop_intake(place: Place, deadline: float) -> Position:
    """Let the standby follow nobody; return what it has durably, replayed or not.

    A primary that is still alive somewhere then cannot hand it anything more.
    """
    state = read_state(place, deadline)
    if not state.standby:
        raise NotNow("this server is not in recovery")
    if state.follows:
        apply(place, {"primary_conninfo": ""}, deadline)
    wait_until(lambda: not _end_receiver(place, deadline), deadline, "the WAL receiver has ended")
    if state.received is None:  # it has received nothing since its start: what is there counts
        apply_received(place, deadline)
    return locate(place.local, deadline)


def _end_receiver(place: Place, deadline: float) -> bool:
    """End the WAL receiver; False when there is none.

    The startup process would do so, but not while replay is paused, or waits for a query.
    """
    receiver = read_state(place, deadline).receiver
    if receiver is not None:
        with suppress(ProcessLookupError):
            os.kill(receiver, signal.SIGTERM)
    return receiver is not None


def apply_received(place: Place, deadline: float) -> Position:
    """Wait until the standby has replayed all that it has.

    :raises NotNow: not by the deadline, or somebody has paused replay.
    """

    def applied() -> bool:
        state = read_state(place, deadline)
        if state.paused:
            raise NotNow("replay is paused: select pg_wal_replay_resume()")
        return not state.standby or state.settled or _ends_torn(place, state, deadline)

    wait_until(applied, deadline, "all received WAL is replayed")
    return locate(place.local, deadline)


def _ends_torn(place: Place, state: State, deadline: float) -> bool:
    """Tell whether what it has ends within a record, the rest of which nobody sends any more.

    The end is replayed never then. That replay waits does not tell: after its receiver has ended it
    waits, too, before it looks at what that has left.
    """
    if state.follows or state.receiver is not None or state.replayed is None:
        return False
    if state.received is None or not state.idle:
        return False
    position = locate(place.local, deadline)
    return is_torn(place, position, after=state.replayed, end=state.received, deadline=deadline)
