"""A server follows a primary, or nobody: what it takes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.recipes.clock import now
from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.position import Position, Relation, compare
from zkelect.recipes.redis import gate
from zkelect.recipes.redis.asking import connect
from zkelect.recipes.redis.demoting import detach
from zkelect.recipes.redis.history import locate
from zkelect.recipes.redis.promoting import check_data
from zkelect.recipes.redis.state import look, read_state
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from zkelect.recipes.redis.place import Place

__all__ = ["join", "stop_intake", "wait_received"]

_STEP: Final = 0.5


def wait_received(place: Place, until: Position, known: Position | None, deadline: float) -> None:
    """Wait until the replica has all of that."""

    def has_it() -> bool:
        position = locate(read_state(place.url, deadline), known)
        return compare(position, until) in (Relation.EQUAL, Relation.AHEAD)

    wait_until(has_it, deadline, f"received up to {until}")


def stop_intake(place: Place, known: Position | None, deadline: float) -> Position:
    """Let the replica follow nobody; return what it has.

    :raises NotNow: it is a master. :raises Incomplete: its data are not whole.
    """
    with connect(place.url, deadline) as client:
        state = look(client)
        if state.master:
            raise NotNow("this server is no replica")
        if state.loading:  # Redis would refuse
            check_data(state)
        detach(client)
        state = look(client)
    check_data(state)
    return locate(state, known)


def join(place: Place, primary: tuple[str, int], deadline: float) -> None:
    """Follow the primary: Redis continues where the histories part, or takes a full copy.

    :raises NotNow: it does not yet. Nothing is waited for longer than a moment, for the
        primary may be another one by then.
    """
    deadline = min(deadline, now() + _STEP)
    with connect(place.url, deadline) as client:
        gate.close(client)
        if look(client).follows != primary:  # to say it again would begin again
            client.replicaof(*primary)

        def attached() -> bool:
            state = look(client)
            return state.linked and state.whole

        wait_until(attached, deadline, "it follows the primary, with all that it had written")
