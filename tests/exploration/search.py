"""The search: every world that can be reached, breadth first, and the future of each."""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from exploration.beginnings import Beginning, beginnings
from exploration.healing import Healing
from exploration.model import FAULTS, Model, Move
from exploration.promises import Broken
from exploration.world import World

__all__ = ["Limits", "Report", "Violation", "search"]


@attrs.frozen(kw_only=True)
class Limits:
    """How far to look.

    :param worlds: stop when so many have been found. :param seconds: or after so long.
    :param faults: so many happen on one way, at most. :param campaigns: of each candidate.
    :param kinds: of faults that happen.
    """

    candidates: int = 2
    worlds: int = 200_000
    seconds: float | None = None
    faults: int = 3
    campaigns: int = 2
    kinds: frozenset[str] = frozenset(FAULTS)


@attrs.frozen(kw_only=True)
class Report:
    """What a search has seen.

    :ivar depth: moves from the nearest beginning to the farthest world.
    :ivar finished: whether there is nothing more within the limits of faults and campaigns.
    :ivar happened: the kinds of moves.
    """

    worlds: int
    transitions: int
    depth: int
    finished: bool
    seconds: float
    happened: frozenset[str]

    def __str__(self) -> str:
        rest = "that is all there are" if self.finished else "there are more"
        return (
            f"{self.worlds:,} worlds ({rest}), {self.transitions:,} transitions, "
            f"depth {self.depth}, {self.seconds:.0f} s"
        )


class Violation(Exception):  # found: that is what a search is for
    """A promise is broken.

    :ivar beginning: where it begins. :ivar way: a shortest way from there.
    :ivar mends_from: where in the way the search ends and the mending begins.
    """

    def __init__(self, broken: Broken, beginning: Beginning, way: Sequence[Move]) -> None:
        super().__init__(str(broken))
        self.promise: Final = broken.promise
        self.beginning: Final = beginning
        self.way: Final = (*way, *broken.moves)
        self.mends_from: Final = len(way)


class _Frontier:
    """The worlds that were found, in order, and how each was come by."""

    def __init__(self) -> None:
        self.worlds: list[World] = []
        self._seen: set[World] = set()
        self._parents = array("i")
        self._moves: list[Move] = []

    def add(self, world: World, parent: int, move: Move) -> bool:
        """Add a world unless it is known; tell whether it is new."""
        if world in self._seen:
            return False
        self._seen.add(world)
        self.worlds.append(world)
        self._parents.append(parent)
        self._moves.append(move)
        return True

    def way(self, index: int) -> tuple[int, list[Move]]:
        """Return the beginning of the way to a world, and its moves."""
        moves: list[Move] = []
        while self._parents[index] >= 0:
            moves.append(self._moves[index])
            index = self._parents[index]
        return index, moves[::-1]


class _Search:
    def __init__(self, limits: Limits, progress: Callable[[Report], None]) -> None:
        self._limits = limits
        self._progress = progress
        self._started = time.monotonic()
        self._model = Model(limits.candidates, campaigns=limits.campaigns, kinds=limits.kinds)
        self._healings = [Healing(self._model, leaving=leaving) for leaving in (False, True)]
        self._found = _Frontier()
        self._transitions = 0
        self._depth = 0
        self._happened: set[str] = set()
        self._beginnings = beginnings(self._model, limits.faults)

    def run(self) -> Report:
        for beginning in self._beginnings:
            self._find(beginning.world, -1, (0, ""))
        start = 0
        while start < len(self._found.worlds) and not self._enough():
            end = len(self._found.worlds)
            start = self._expand(start, end)
            self._depth += 1
            self._progress(self._report(finished=False))
        return self._report(finished=start == len(self._found.worlds))

    def _expand(self, start: int, end: int) -> int:
        """Go one move further from a layer of worlds; return where it stopped."""
        for index in range(start, end):
            if index % 64 == 0 and self._enough():
                return index
            self._look_around(index)
        return end

    def _look_around(self, index: int) -> None:
        for move, world in self._model.happenings(self._found.worlds[index]):
            self._transitions += 1
            self._happened.add(move[1])
            if isinstance(world, Broken):
                self._tell(index, world, move)
            else:
                self._find(world, index, move)

    def _find(self, world: World, parent: int, move: Move) -> None:
        """Note a world, and judge its future, unless it is known."""
        if not self._found.add(world, parent, move):
            return
        for healing in self._healings:
            try:
                healing.heal(world)
            except Broken as broken:
                self._tell(len(self._found.worlds) - 1, broken)

    def _tell(self, index: int, broken: Broken, *moves: Move) -> None:
        root, way = self._found.way(index)
        raise Violation(broken, self._beginnings[root], (*way, *moves)) from broken

    def _enough(self) -> bool:
        limits = self._limits
        if len(self._found.worlds) >= limits.worlds:
            return True
        return limits.seconds is not None and time.monotonic() - self._started > limits.seconds

    def _report(self, *, finished: bool) -> Report:
        return Report(
            worlds=len(self._found.worlds),
            transitions=self._transitions,
            depth=self._depth,
            finished=finished,
            seconds=time.monotonic() - self._started,
            happened=frozenset(self._happened),
        )


def search(limits: Limits, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Search all worlds within the limits, nearest first.

    :param progress: told after each layer.
    :raises Violation: a promise is broken, on a shortest way.
    """
    gc.disable()  # millions of tuples and no cycle: collecting takes a fifth of the time
    try:
        return _Search(limits, progress).run()
    finally:
        gc.enable()
