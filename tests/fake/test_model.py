"""Anything can happen to N machines, at any time, in any order: what must hold all the same.

The machines, their sessions, leases and probes are the real code; the servers are in
memory. Hypothesis draws what happens next, down to which thread of which client hands over
its next message. Every rule can do something when it fires; how often each did is printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from fake.hosts import PATH, SESSION_TIMEOUT, TICK, Host
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import zkelect
from zkelect.core.state import Phase
from zkelect.stores import MemoryFence
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.conversation import REPLIES, REQUESTS
from zkelect.testing.fake_machine import Move

HEALING = 12 * SESSION_TIMEOUT
"""Seconds within which all is well again: the slow re-read comes every 3 to 5 timeouts."""

LOSABLE = ("create2", "getChildren", "getData", "multi", "delete", "create")


class Model(RuleBasedStateMachine):
    """The rules. A host is drawn only from those to which the rule can do something."""

    fired: ClassVar[Counter[str]] = Counter()
    seen: ClassVar[Counter[str]] = Counter()

    @initialize(count=st.integers(2, 3), servers=st.sampled_from([1, 3]), known=st.booleans())
    def begin(self, count: int, servers: int, known: bool) -> None:
        self.fake = FakeEnsemble(servers, tick_time=TICK)
        self.tick = TICK if known else None
        self.hosts = [self.connect(f"h{n}", n % servers) for n in range(count)]
        self.fence = MemoryFence(domain="model")
        self.foreign_nodes: set[str] = set()
        self.foreign_sessions: set[int] = set()
        self.tokens: list[zkelect.Token] = []
        self.granted: dict[int, int] = {}
        self.wrote = 0

    def connect(self, name: str, server: int) -> Host:
        return Host(self.fake, name, tick=self.tick, server=server)

    def note(self, name: str) -> None:
        self.fired[name] += 1

    @property
    def living(self) -> list[Host]:
        return [host for host in self.hosts if not host.dead]

    def those(self, fits: Callable[[Host], object]) -> list[Host]:
        return [host for host in self.living if fits(host)]

    def draw(self, data: Any, fits: Callable[[Host], object]) -> Host:
        return data.draw(st.sampled_from(self.those(fits)), label="host")  # type: ignore[no-any-return]  # what was put in


def possible(fits: Callable[[Host], object]) -> Callable[[Any], Any]:
    """Fire only when there is a living host to which the rule can do something."""
    return precondition(lambda model: hasattr(model, "hosts") and bool(model.those(fits)))
