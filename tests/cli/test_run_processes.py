"""Processes as /proc shows them, and signals that hit no other."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from zkelect.cli.run.keeper.processes import children, descendants, look_up, send
from zkelect.cli.run.keeper.tree import Tree


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    """A child of ours with a child."""
    script = "(echo up; exec sleep 600) & wait"
    with subprocess.Popen(["sh", "-c", script], text=True, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        born = (*descendants(parent.pid), parent.pid)
        yield parent
        for pid in born:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_parents_come_before_their_children(family: subprocess.Popen[str]) -> None:
    (grandchild,) = children(family.pid)
    found = descendants(os.getpid())
    assert found.index(family.pid) < found.index(grandchild)


def test_who_is_spared_is_spared_with_all_that_came_of_it(family: subprocess.Popen[str]) -> None:
    (grandchild,) = children(family.pid)
    assert not {family.pid, grandchild} & set(descendants(os.getpid(), frozenset({family.pid})))


def test_a_signal_goes_to_the_process_that_was_looked_up(family: subprocess.Popen[str]) -> None:
    found = look_up(family.pid)
    assert found is not None and found.alive and found.parent == os.getpid()
    assert send(found, signal.SIGKILL)
    assert family.wait() == -signal.SIGKILL


def test_a_signal_does_not_go_to_a_later_process_of_the_same_number(
    family: subprocess.Popen[str],
) -> None:
    found = look_up(family.pid)
    assert found is not None
    assert not send(found._replace(born=found.born - 1), signal.SIGKILL)
    assert family.poll() is None


def test_a_zombie_is_not_alive_and_one_that_was_reaped_is_not_there(
    family: subprocess.Popen[str],
) -> None:
    family.kill()
    os.waitid(os.P_PID, family.pid, os.WEXITED | os.WNOWAIT)
    zombie = look_up(family.pid)
    assert zombie is not None and not zombie.alive
    orphan = Tree(family.pid, None).survivors()
    assert orphan == ()
    family.wait()
    assert look_up(family.pid) is None
    assert not send(zombie, signal.SIGKILL)
