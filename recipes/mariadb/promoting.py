"""A replica becomes the primary: it forgets whom it followed while it is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.recipes.mariadb.asking import connect
from zkelect.recipes.mariadb.intake import check_data
from zkelect.recipes.mariadb.state import look, read_state
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from zkelect.recipes.mariadb.place import Place
    from zkelect.recipes.position import Position

__all__ = ["become_primary", "locate_primary"]


def become_primary(place: Place, deadline: float) -> Position:
    """Follow nobody, for good; a primary stays what it is.

    The new branch begins with the first transaction, which is the claim's.

    :raises Unsound: its data are not what a primary may have.
    """
    with connect(place, deadline) as client:
        state = look(client, place.database)
        check_data(state)
        if state.follows is not None:
            client.run("STOP SLAVE")
            client.run("RESET SLAVE ALL")
        return look(client, place.database).position


def locate_primary(place: Place, deadline: float) -> Position:
    """Return where the primary stands.

    :raises NotNow: it is told to follow somebody.
    """
    state = read_state(place, deadline)
    if state.follows is not None:
        raise NotNow("the server is told to follow another one")
    return state.position
