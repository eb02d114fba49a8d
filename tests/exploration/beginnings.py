"""Where searches begin: before anybody stands, and when everybody has a place."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from exploration.healing import Healing
from exploration.model import Model, Move
from exploration.promises import Broken
from exploration.world import Servers, Tree, World

__all__ = ["Beginning", "beginnings"]


class Beginning(NamedTuple):
    """A world that a search begins from.

    :ivar told: how a story would begin. :ivar moves: what happened before.
    """

    told: str
    servers: Servers
    moves: tuple[Move, ...]
    world: World


def beginnings(model: Model, faults: int) -> list[Beginning]:
    """Return the beginnings of a search with so many faults."""
    connected: list[Move] = [(own, "X connects") for own in model.who]
    bare = Servers(tree=Tree(parent=False, generation=0))
    found = [
        _begin(model, faults, "everybody is connected", Servers(), connected),
        _begin(model, faults, "nothing is there yet", bare, connected),
    ]
    with suppress(Broken):  # a broken machine may not come so far: the first search tells why
        in_order = _in_order(model, connected)
        found.append(_begin(model, faults, "everybody has a place", Servers(), in_order))
    return found


def _in_order(model: Model, connected: list[Move]) -> list[Move]:
    """Each campaigns, and is heard out before the next one does."""
    moves = list(connected)
    world = _take(model, model.beginning(Servers(), 0), moves)
    for own in model.who:
        stands: Move = (own, "X campaigns")
        mending, world = Healing(model, leaving=False).settle(model.take(world, stands))
        moves += [stands, *mending]
    return moves


def _take(model: Model, world: World, moves: list[Move]) -> World:
    for move in moves:
        world = model.take(world, move)
    return world


def _begin(model: Model, faults: int, told: str, servers: Servers, moves: list[Move]) -> Beginning:
    world = _take(model, model.beginning(servers, faults), moves)
    return Beginning(told, servers, tuple(moves), (faults, *world[1:]))
