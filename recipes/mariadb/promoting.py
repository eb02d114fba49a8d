"""A replica becomes the primary: it forgets whom it followed, closed, and its branch has a name."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from zkelect.recipes.mariadb import gate
from zkelect.recipes.mariadb.asking import connect
from zkelect.recipes.mariadb.history import Promotion, begin, make_tables
from zkelect.recipes.mariadb.intake import check_data
from zkelect.recipes.mariadb.state import look, read_state
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from zkelect.recipes.mariadb.place import Place
    from zkelect.recipes.position import Position

__all__ = ["become_primary", "locate_primary"]


def become_primary(place: Place, before: Promotion | None, deadline: float) -> Promotion:
    """Follow nobody, for good; return the promotion, which the claim enters.

    A server that takes writes, taken over as it runs, is closed: the claim's transaction is to be
    the first of the branch.

    :param before: what this returned last, None when the server was demoted or followed since.
        One that has been entered stays what it is.
    :raises Unsound: its data are not what a primary may have.
    """
    with connect(place, deadline) as client:
        state = look(client, place.database)
        check_data(state)
        if before is not None and before in state.promotions:
            return before
        if state.writable:
            gate.close(place, deadline)
        if state.follows is not None:
            client.run("STOP SLAVE")
            client.run("RESET SLAVE ALL")
        make_tables(client, place.database)
        end = look(client, place.database).position.offset
    branch = secrets.token_hex(8) if before is None else before.branch
    return Promotion(end, state.server, branch)


def locate_primary(place: Place, promotion: Promotion | None, deadline: float) -> Position:
    """Return where the primary stands, on its branch also when nothing is written there yet.

    :param promotion: the last one, None when it was demoted since.
    :raises NotNow: it is told to follow somebody, or is to be promoted again.
    """
    state = read_state(place, deadline)
    if state.follows is not None:
        raise NotNow("the server is told to follow another one")
    if promotion is None:
        raise NotNow("the server was demoted meanwhile")
    if promotion in state.promotions:
        return state.position
    if state.position.offset != promotion.start:
        raise NotNow(f"somebody has written {state.end} since it was promoted")
    return begin(promotion, state.position)
