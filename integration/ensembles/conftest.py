"""Three servers whose network can be broken, shared, and mended after each test."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from election.actor import TICK
from ensembles.candidate import Candidate

from zkelect.testing.mending import mend
from zkelect.testing.namespaces import NamespaceEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Operator

LONGEST = 20.0
"""Seconds: the longest session timeout that the servers grant."""


@pytest.fixture(scope="session")
def three_servers() -> Iterator[NamespaceEnsemble]:
    with NamespaceEnsemble(3, tick_time=TICK, max_session_timeout=LONGEST) as started:
        yield started


@pytest.fixture
def ensemble(three_servers: NamespaceEnsemble) -> Iterator[NamespaceEnsemble]:
    yield three_servers
    mend(three_servers)


@pytest.fixture
def operator(operate: Callable[..., Operator], ensemble: NamespaceEnsemble) -> Operator:
    return operate(ensemble.hosts)


@pytest.fixture
def stand(ensemble: NamespaceEnsemble, path: str) -> Iterator[Callable[..., Candidate]]:
    """Make a candidate for this test's election; all leave when the test ends."""
    with ExitStack() as stack:

        def make(name: str, *, hosts: str = ensemble.hosts, **options: Any) -> Candidate:
            return stack.enter_context(Candidate(hosts, path, name, **options))

        yield make
