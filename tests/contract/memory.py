"""The world of a contract story, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contract.world import SESSION_TIMEOUT, TICK

import zkelect
from zkelect.testing import FakeEnsemble
from zkelect.testing.conversation import Direction
from zkelect.testing.fake import Step

__all__ = ["Choice", "Memory"]

Choice = Callable[[Sequence[Step]], Step]


class Memory:
    """See :class:`contract.world.World`.

    :param choose: in which order things happen.
    """

    path = "/contract"

    def __init__(self, choose: Choice | None = None, *, servers: int = 1) -> None:
        self.fake = FakeEnsemble(servers, tick_time=TICK)
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
