"""The sync set, at every interrupted prefix: whoever is recorded has all that was acknowledged."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator

import attrs
import pytest

from zkelect.recipes.sync_set import Record, Require, Step, next_step

NAMES = ("b", "c")
WRITES = 2


@attrs.frozen(kw_only=True)
class World:
    """A primary, what it has acknowledged, and what each other one has.

    :ivar known: for whom the agent knows the server to wait; None: it was started anew.
    :ivar in_step: as the agent was told last.
    """

    written: int = 0
    acked: int = 0
    has: tuple[int, ...] = (0, 0)
    attached: tuple[bool, ...] = (True, True)
    waits_for: frozenset[str] = frozenset()
    known: frozenset[str] | None = None
    recorded: frozenset[str] = frozenset()

    def row(self, name: str) -> int:
        return self.has[NAMES.index(name)]

    def settled(self) -> World:
        """Acknowledge what those have for whom the server waits."""
        least = min([self.written, *(self.row(name) for name in self.waits_for)])
        return attrs.evolve(self, acked=max(self.acked, least))


Rule = Callable[..., Step | None]


def steps(world: World, rule: Rule, size: int) -> Iterator[World]:
    if world.written < WRITES:
        yield attrs.evolve(world, written=world.written + 1).settled()
    for at, attached in enumerate(world.attached):
        turned = (*world.attached[:at], not attached, *world.attached[at + 1 :])
        yield attrs.evolve(world, attached=turned)
        if attached and world.has[at] < world.written:
            has = (*world.has[:at], world.written, *world.has[at + 1 :])
            yield attrs.evolve(world, has=has).settled()
    yield attrs.evolve(world, known=None)
    in_step = [
        name
        for name, attached in zip(NAMES, world.attached, strict=True)
        if attached and world.row(name) >= world.acked
    ]
    match rule(recorded=world.recorded, required=world.known, in_step=in_step, size=size):
        case Require(names=names):
            yield attrs.evolve(world, waits_for=names, known=names).settled()
        case Record(names=names):
            yield attrs.evolve(world, recorded=names)


def search(rule: Rule, size: int) -> int:
    """Return how many worlds there are; whoever is recorded has all, in each of them."""
    start = World()
    seen, queue = {start}, deque([start])
    while queue:
        world = queue.popleft()
        for name in world.recorded:
            assert world.row(name) >= world.acked, f"{name} lacks something: {world}"
        for after in steps(world, rule, size):
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return len(seen)


@pytest.mark.parametrize("size", [1, 2])
def test_h81_whoever_is_recorded_has_every_acknowledged_write_in_every_world(size: int) -> None:
    assert search(next_step, size) > 200


def drops_first(**known: object) -> Step | None:
    """Wait no longer for one that is recorded still."""
    step = next_step(**known)  # type: ignore[arg-type]  # passed on as it came
    return Require(step.names) if isinstance(step, Record) and not step.names else step


def records_first(**known: object) -> Step | None:
    """Record one before the server waits for it."""
    step = next_step(**known)  # type: ignore[arg-type]  # passed on as it came
    return Record(step.names) if isinstance(step, Require) and step.names else step


@pytest.mark.parametrize("rule", [drops_first, records_first])
def test_steps_in_the_other_order_are_found_out(rule: Rule) -> None:
    with pytest.raises(AssertionError, match="lacks something"):
        search(rule, 1)


@pytest.mark.parametrize("size", [1, 2])
def test_left_alone_it_comes_to_rest_with_as_many_as_there_should_be(size: int) -> None:
    for recorded, required in itertools.product(((), ("b",), ("c",)), repeat=2):
        world = World(recorded=frozenset(recorded), known=frozenset(required))
        for _ in range(9):
            world = _own_step(world, size)
        assert world == _own_step(world, size)
        assert len(world.recorded) == size
        assert world.known == world.recorded


def _own_step(world: World, size: int) -> World:
    match next_step(recorded=world.recorded, required=world.known, in_step=NAMES, size=size):
        case Require(names=names):
            return attrs.evolve(world, known=names)
        case Record(names=names):
            return attrs.evolve(world, recorded=names)
    return world


def test_nobody_is_exchanged_for_another_while_in_step() -> None:
    assert next_step(recorded={"c"}, required={"c"}, in_step={"b", "c"}, size=1) is None
