"""The contract, kept by the ensemble in memory; integration/contract keeps it on a real one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from contract.memory import Memory
from contract.stories import STORIES, Story


@pytest.fixture(params=["in order", *range(12)])
def world(request: pytest.FixtureRequest) -> Iterator[Memory]:
    seed = request.param
    made = Memory(None if seed == "in order" else random.Random(seed).choice)
    yield made
    made.fake.close()


@pytest.mark.parametrize("tell", STORIES.values(), ids=STORIES)
def test_story(tell: Story, world: Memory) -> None:
    tell(world)
