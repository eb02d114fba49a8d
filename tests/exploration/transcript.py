"""A violation, told as the stories in tests/stories are: what is done, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator

from theatre import short, spell

from exploration.model import Model, Move, spell_move
from exploration.promises import Broken
from exploration.search import Violation
from exploration.world import World
from zkelect.core.state import Phase, State

__all__ = ["tell"]


def tell(violation: Violation, candidates: int) -> str:
    """Return how it came to it; must be called while the machine is as it was."""
    return "\n".join(_Teller(candidates).tell(violation))


class _Teller:
    """Goes the way again, with names as they come."""

    def __init__(self, candidates: int) -> None:
        self._model = Model(candidates, campaigns=1_000, renames=False)

    def tell(self, violation: Violation) -> Iterator[str]:
        beginning = violation.beginning
        yield f"# {violation}"
        yield f"given {beginning.told}"
        world = self._model.beginning(beginning.servers, 0)
        for move in beginning.moves:
            world = self._model.take(world, move)
        yield from self._places(world)
        for number, move in enumerate(violation.way):
            if number == violation.mends_from:
                yield "# from here on all is mended"
            yield self._line(world, move)
            yield from self._step(world, move)
            try:
                world = self._model.take(world, move)
            except Broken as broken:
                yield f"  {broken.promise} is broken"
                return
        yield from self._places(world)
        yield f"  {violation.promise} is broken"

    def _places(self, world: World) -> Iterator[str]:
        for own in self._model.who:
            yield f"  {_name(own)} is {_place(self._model.state(world, own))}"
        roll = " ".join(map(short, self._model.servers[world[1]].tree.names))
        yield f"  the servers have {roll or 'nobody'}"

    def _line(self, world: World, move: Move) -> str:
        own, line = move[0], spell_move(move)
        if not line.endswith("'s request"):
            return line
        request = self._model.candidate(world, own).requests[0]
        return line.replace("request", spell(self._model.alone[own].words[request]))

    def _step(self, world: World, move: Move) -> Iterator[str]:
        outcome = self._model.outcome(world, move)
        if isinstance(outcome, Broken) or outcome.step is None:
            return
        alone, name = self._model.alone[move[0]], _name(move[0])
        yield f"  {name} <- {spell(alone.words[outcome.step[1]])}"
        state, effects = alone.step(outcome.step)
        if effects:
            yield f"  {name} -> {', '.join(spell(alone.words[number]) for number in effects)}"
        before, after = (_place(alone.words[number]) for number in (outcome.step[0], state))
        if before != after:
            yield f"  {name} is {after}"


def _name(own: int) -> str:
    return chr(ord("A") + own)


def _place(state: State) -> str:
    if state.phase is not Phase.WAITING:
        return str(state.phase)
    return f"waiting behind {short(state.ahead[-1].node)}" if state.ahead else "waiting, the first"
