"""Tests that are killed leave nothing behind: no agent, no server, no dead-man, no hook."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from election.waiting import WITHIN, boottime, until
from recipes.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.timeout(300)

INTEGRATION: Final = Path(__file__).parents[1]
STAGE: Final = """\
import sys
from recipes.kinds import KINDS
from recipes.stage import staged
from zkelect.testing import LocalEnsemble
with (
    LocalEnsemble(tick_time=0.2) as zookeeper,
    staged(KINDS[sys.argv[1]], zookeeper, "/cluster") as stage,
):
    print("set", *(node.pid for node in stage.cluster.nodes.values()), flush=True)
    sys.stdin.read()
"""
HOOKS: Final = """\
import sys
from pathlib import Path
from recipes.hooks_stage import hooks_staged
from zkelect.testing import LocalEnsemble
with (
    LocalEnsemble(tick_time=0.2) as zookeeper,
    hooks_staged(zookeeper, "/cluster", Path(sys.argv[1])) as stage,
):
    stage.hook("b", "position", "sleep 600")
    print("set", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kind", KINDS)
def test_agents_servers_and_dead_men_end_with_the_tests_that_are_killed(kind: str) -> None:
    """The daemons too: the stage takes them for its children, so that they are found here."""
    with run(STAGE, kind) as (tests, servers):
        found = descendants(tests.pid)
        said = [command(pid) for pid in found]
        assert len(servers & found) == 3, said
        assert sum("recipes.agent_process" in each for each in said) == 3, said
        assert any(".watcher" in each for each in said), said
        kill(tests, found)


def test_hooks_end_with_the_tests_that_are_killed(tmp_path: Path) -> None:
    with run(HOOKS, str(tmp_path)) as (tests, _):
        until(lambda: "sleep 600" in map(command, descendants(tests.pid)), "the hook runs")
        kill(tests, descendants(tests.pid))


@contextmanager
def run(program: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], set[int]]]:
    """Have a process set a stage; it is set when the block begins, and has named its servers."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=INTEGRATION,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        assert tests.stdout is not None
        done, *servers = tests.stdout.readline().split() or [""]
        assert done == "set"
        yield tests, set(map(int, servers))


def kill(tests: subprocess.Popen[str], pids: set[int]) -> None:
    """Kill the process, and wait until all of these have ended."""
    with ExitStack() as stack:
        handles = {}
        for pid in pids:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                stack.callback(os.close, handle)
                handles[handle] = f"{pid} {command(pid)}"
        tests.kill()
        left = wait_ended(handles)
    assert left == []


def wait_ended(handles: dict[int, str]) -> list[str]:
    """Return those that have not ended within the outer bound."""
    deadline = boottime() + WITHIN
    while handles and (remaining := deadline - boottime()) > 0:
        ended, _, _ = select.select(list(handles), [], [], remaining)
        for handle in ended:
            del handles[handle]
    return list(handles.values())


def descendants(pid: int) -> set[int]:
    found = set(children(pid))
    return found.union(*(descendants(child) for child in found))


def children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            yield from map(int, (task / "children").read_text().split())


def command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""
