"""A world in memory, and candidates in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from contract.memory import Memory
from contract.world import Stander

from zkelect.testing import FakeEnsemble


@pytest.fixture
def world() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.fake.close()


@pytest.fixture
def fake(world: Memory) -> FakeEnsemble:
    return world.fake


@pytest.fixture
def stand(world: Memory) -> Iterator[Callable[[str], Stander]]:
    """Let a candidate stand, and everything happen that follows from it."""
    with ExitStack() as stack:

        def begin(name: str) -> Stander:
            stander = stack.enter_context(Stander(world, name).standing(world))
            world.quiet()
            return stander

        yield begin
