"""What a replica takes in: ended so that what it was sent is applied, and counted then.

MariaDB throws away what is received and not applied when replication by GTID begins anew, as it
does after a restart of the server ("Global Transaction ID"). So that is no position yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect import ZkelectError
from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.mariadb.asking import connect
from zkelect.recipes.mariadb.state import look
from zkelect.recipes.position import Position, Relation, compare
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from zkelect.recipes.mariadb.place import Place
    from zkelect.recipes.mariadb.state import State

__all__ = ["Unsound", "check_data", "objection", "stop_intake", "wait_received"]

_HAS_IT: Final = (Relation.EQUAL, Relation.AHEAD)


class Unsound(ZkelectError):
    """The server has data of which it is not known where they come from."""


def objection(state: State) -> str:
    """Return why its data are not such that it could be the primary; empty: they are."""
    if state.strangers:
        told = ", ".join(map(str, state.strangers))
        return f"it has transactions of another domain than its gtid_domain_id: {told}"
    if state.trespassed:
        return (
            f"its last transaction {state.end} is not the primary's: somebody wrote here, as FLUSH"
            " without LOCAL does"
        )
    return ""


def check_data(state: State) -> None:
    """Make sure that its data are such that it could be the primary.

    :raises Unsound: they are not.
    """
    if why := objection(state):
        raise Unsound(why)


def wait_received(place: Place, until: Position, deadline: float) -> None:
    """Wait until the replica has all of that, applied.

    :raises NotNow: it does not by the deadline.
    """
    with connect(place, deadline) as client:
        wait_until(
            lambda: compare(look(client, place.database).position, until) in _HAS_IT,
            deadline,
            f"it has everything up to {until}",
        )


def stop_intake(place: Place, deadline: float) -> Position:
    """Follow nobody any more; return what it has, once all that it was sent is applied.

    :raises NotNow: it takes writes itself, or has not applied it by the deadline; nothing more
        comes in by then, and it goes on applying.
    :raises Unsound: its data are not what a primary may have.
    """
    with connect(place, deadline) as client:
        if look(client, place.database).writable:
            raise NotNow("this server takes writes itself")
        client.run("STOP SLAVE IO_THREAD")
        wait_until(
            lambda: look(client, place.database).behind == 0,
            deadline,
            "all that it has received is applied",
        )
        client.run("STOP SLAVE")
        state = look(client, place.database)
    check_data(state)
    return state.position
