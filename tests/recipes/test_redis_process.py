"""The process of a Redis server: who was killed has ended, or it is said; nobody is spared."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zkelect.recipes.redis import process, watcher
from zkelect.recipes.redis.place import URL
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def running() -> Iterator[subprocess.Popen[bytes]]:
    """A process that passes for the server's."""
    with subprocess.Popen(["sleep", "600"]) as passing:
        yield passing
        passing.kill()


def descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_a_process_is_found_by_its_run_and_not_by_its_number(
    running: subprocess.Popen[bytes],
) -> None:
    before = descriptors()
    assert process.lives(process.identify(running.pid))
    assert not process.lives(f"{running.pid}/1")
    assert descriptors() == before


def test_one_that_ends_while_it_is_looked_for_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch, running: subprocess.Popen[bytes]
) -> None:
    before, name = descriptors(), process.identify(running.pid)

    def ended(_: int) -> str:
        raise ProcessLookupError

    monkeypatch.setattr(process, "identify", ended)
    assert process.find(name) is None
    assert descriptors() == before


def test_a_killed_process_that_does_not_end_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, running: subprocess.Popen[bytes]
) -> None:
    """Such as one that waits for a dead disk; or the first process of a container."""
    monkeypatch.setattr(process, "_DYING", 0.05)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
    handle = os.pidfd_open(running.pid)
    try:
        with pytest.raises(NotNow, match="has not ended within"):
            process.kill(handle)
    finally:
        os.close(handle)


@pytest.mark.parametrize("obey", [0.0, 0.05])
def test_a_dead_man_that_is_held_up_kills(
    monkeypatch: pytest.MonkeyPatch, running: subprocess.Popen[bytes], obey: float
) -> None:
    """Also when the time to obey is over before it has asked."""
    monkeypatch.setattr(watcher, "_OBEY", obey)
    monkeypatch.setenv(URL, "redis://127.0.0.1:1/0")
    watcher.strike(process.identify(running.pid))
    assert running.wait(10) == -9
