"""Healing: all is mended, message by message; then the right one leads, or all have left.

From a world nobody may be stuck in: every link comes up again, every lost session ends,
every message arrives, every body whose term is over returns; once all is quiet a paused
election is resumed. No further fault happens, and
who waits goes on waiting. The order is fixed, so two worlds that lead to the same one have
the same future, which is judged once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from exploration.judging import check_left, check_rest
from exploration.model import Model, Move
from exploration.promises import Broken, keep
from exploration.world import World
from zkelect.core.state import Phase

__all__ = ["LONGEST", "Healing"]

LONGEST: Final = 150
"""Moves after which a world should have come to rest."""

_MENDING: Final = (
    "X's server catches up",
    "X hears the news",
    "X hears one reply",
    "a server does X's request",
    "X learns that its session is over",
    "X connects",
    "X reconnects",
    "X has rested",
    "X's grace ends",
    "X has prepared",
    "X's probe is committed",
    "X's old session expires",
)
_DROP: Final = "X loses its link"
_REREAD: Final = "X rereads the roll at last"
_RESUME: Final = "somebody resumes the election"
_LEAVING: Final = ("X cancels", "X resigns", "X's body returns")


class Healing:
    """Mends worlds and judges what becomes of them.

    :param leaving: everybody cancels and resigns first.
    """

    def __init__(self, model: Model, *, leaving: bool) -> None:
        self._model = model
        self._leaving = leaving
        self._healed: set[tuple[int, ...]] = set()
        self._choices: dict[int, str | None] = {}

    def heal(self, world: World) -> None:
        """Mend a world unless its future is known already.

        :raises Broken: in the end something is wrong; it has the moves that led there.
        """
        moves: list[Move] = []
        try:
            self._healed.update(self._mend(world, moves))
        except Broken as broken:
            broken.moves = moves
            raise

    def settle(self, world: World) -> tuple[list[Move], World]:
        """Mend a world; return the moves made, and what it is at rest."""
        moves: list[Move] = []
        while (move := self._next(world)) is not None:
            keep("comes to rest", len(moves) < LONGEST)
            moves.append(move)
            world = self._model.take(world, move)
        return moves, world

    def _mend(self, world: World, moves: list[Move]) -> set[tuple[int, ...]]:
        """Mend a world, noting the moves; return the worlds passed on the way."""
        passed: set[tuple[int, ...]] = set()
        while world[1:] not in self._healed:
            keep("comes to rest", world[1:] not in passed and len(moves) < LONGEST)
            passed.add(world[1:])
            move = self._next(world)
            if move is None:
                self._check(world)
                break
            moves.append(move)
            world = self._model.take(world, move)
        return passed

    def _next(self, world: World) -> Move | None:
        """Return what mends the world by one step; None when it is at rest."""
        for choose in (self._choose, self._wait):
            for own in self._model.who:
                kind = choose(world, own)
                if kind is not None:
                    return own, kind
        return None

    def _choose(self, world: World, own: int) -> str | None:
        """Return what mends a candidate; as it can do the same, it is the same."""
        lonely, met = self._model.possible(world, own)
        if id(met) not in self._choices:
            wanted = self._wanted(world, own)
            choice = next((kind for kind in wanted if kind in lonely or kind in met), None)
            self._choices[id(met)] = choice
        return self._choices[id(met)]

    def _wanted(self, world: World, own: int) -> Iterator[str]:
        if self._leaving:
            yield from _LEAVING
        state = self._model.state(world, own)
        if state.connected and state.session_id not in self._model.alive(world):
            yield _DROP
        yield from _MENDING
        if state.phase is Phase.LEAVING:
            yield "X's body returns"

    def _wait(self, world: World, own: int) -> str | None:
        """Return what time would bring: the next link, a word of the operator, a slow re-read."""
        state = self._model.state(world, own)
        if state.phase is Phase.LEAVING and state.lost and state.sent:
            return _DROP  # its look for what a lost create made was refused
        lonely, met = self._model.possible(world, own)
        if _RESUME in met:
            return _RESUME
        return _REREAD if _REREAD in lonely else None

    def _check(self, world: World) -> None:
        check = check_left if self._leaving else check_rest
        check(self._model.everybody(world), self._model.servers[world[1]])
