"""Candidates behind fault proxies: each actor's forwarder stands before a proxy of its own."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from election.actor import TICK

from zkelect.testing import FaultProxy, LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from election.actor import Actor

UNHURRIED = 20.0
"""Seconds: a session timeout so long that no delayed frame looks like a dead link."""


@pytest.fixture(scope="session")
def patient() -> Iterator[LocalEnsemble]:
    """A server that grants long sessions."""
    with LocalEnsemble(tick_time=TICK, max_session_timeout=UNHURRIED) as started:
        yield started


@pytest.fixture
def stand_between() -> Iterator[Callable[[str], FaultProxy]]:
    """Put a proxy before some servers; all are closed at the end, after the actors."""
    with ExitStack() as stack:
        yield lambda hosts: stack.enter_context(FaultProxy(hosts))


@pytest.fixture
def proxy(stand_between: Callable[[str], FaultProxy], zookeeper: LocalEnsemble) -> FaultProxy:
    return stand_between(zookeeper.hosts)


@pytest.fixture
def behind(
    stand_between: Callable[[str], FaultProxy],
    zookeeper: LocalEnsemble,
    cast: Callable[..., Actor],
) -> Iterator[Callable[..., tuple[Actor, FaultProxy]]]:
    """Make a candidate behind a proxy; every rule must have fired when the test ends."""
    made: list[FaultProxy] = []

    def make(
        name: str, *, server: str = zookeeper.hosts, **options: Any
    ) -> tuple[Actor, FaultProxy]:
        made.append(stand_between(server))
        return cast(name, server=made[-1].hosts, **options), made[-1]

    yield make
    unfired = [each.unfired for each in made]
    for each in made:
        each.heal()
        for rule in each.rules:
            rule.cancel()
    assert not any(unfired), f"not tested: {unfired}"
