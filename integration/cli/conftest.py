"""Commands as processes, pointed at the real server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from cli.command import Ended, Running
from cli.household import Household

from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def begin(zookeeper: LocalEnsemble) -> Iterator[Callable[..., Running]]:
    """Begin a command: ``begin("watch", path)``; keywords change its environment."""
    with ExitStack() as stack:

        def launch(*arguments: str, **env: str | None) -> Running:
            found = {"ZKELECT_HOSTS": zookeeper.hosts, **env}
            return stack.enter_context(Running(arguments, found))

        yield launch


@pytest.fixture
def zkelect_command(begin: Callable[..., Running]) -> Callable[..., Ended]:
    """Run a command to its end: ``zkelect_command("status", path, "-o", "json")``."""

    def run(*arguments: str, **env: str | None) -> Ended:
        return begin(*arguments, **env).end()

    return run


@pytest.fixture
def patient() -> Iterator[LocalEnsemble]:
    """A server with long sessions, for what must come back within the lease."""
    with LocalEnsemble(max_session_timeout=30.0) as started:
        yield started


@pytest.fixture
def household(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Household]]:
    """Begin ``zkelect run`` for this test's election: ``household("-n", "--", "sleep", "9")``."""
    with ExitStack() as stack:

        def begin(*options: str, hosts: str = zookeeper.hosts, **how: Any) -> Household:
            usual = ("--session-timeout", "2")
            return stack.enter_context(Household(hosts, path, *usual, *options, **how))

        yield begin
