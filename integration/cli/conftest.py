"""Commands as processes, pointed at the real server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from cli.command import Ended, Running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble


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
