"""The contract, kept by the ensemble in memory; integration/contract keeps it on a real one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from contract.stories import STORIES, Story
from contract.world import SESSION_TIMEOUT, TICK

import zkelect
from zkelect.testing import FakeEnsemble
from zkelect.testing.conversation import Direction
from zkelect.testing.fake import Step

Choice = Callable[[Sequence[Step]], Step]


class Memory:
    """The world of a story, in memory.

    :param choose: in which order things happen.
    """

    path = "/contract"

    def __init__(self, choose: Choice | None) -> None:
        self.fake = FakeEnsemble(tick_time=TICK)
        self.fake.create(self.path)
        self._choose = choose

    def connect(self) -> zkelect.Session:
        return self.fake.connect(session_timeout=SESSION_TIMEOUT, tick_time=TICK)

    def until(self, condition: Callable[[], object], what: str) -> None:
        until = self.fake.clock.now + 20 * SESSION_TIMEOUT
        self.fake.settle(self._choose)
        while not condition():
            assert self.fake.clock.now < until, f"it never came about that {what}"
            self.fake.advance(0.05, self._choose)

    def quiet(self) -> None:
        self.fake.settle(self._choose)

    def reconnect(self, session: zkelect.Session) -> None:
        self.fake.drop(session)
        self.fake.advance(0.1, self._choose)
        assert session.connected

    def cut(self, session: zkelect.Session, *directions: Direction) -> None:
        self.fake.cut(session, *directions)

    def heal(self, session: zkelect.Session) -> None:
        self.fake.heal(session)


@pytest.fixture(params=["in order", *range(12)])
def world(request: pytest.FixtureRequest) -> Iterator[Memory]:
    seed = request.param
    made = Memory(None if seed == "in order" else random.Random(seed).choice)
    yield made
    made.fake.close()


@pytest.mark.parametrize("tell", STORIES.values(), ids=STORIES)
def test_story(tell: Story, world: Memory) -> None:
    tell(world)
