"""The dead-man's process is there when it is needed, whatever has become of the last one."""

from __future__ import annotations

import os
import select
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.deadman import DeadMan

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(20)

_WATCHER: Final = """\
import os
import sys
from zkelect.recipes.watching import keep_watch
with open(os.environ["STARTED"], "w") as started:
    print(os.getpid(), file=started)
def strike(target):
    with open(target, "w") as struck:
        print("struck", file=struck)
keep_watch(sys.stdin.buffer, strike)
"""


class Bench:
    """A dead-man whose process tells its number when it starts, and in the target that it strikes.

    Both are told through named pipes: whoever reads one waits until it is so.
    """

    def __init__(self, folder: Path) -> None:
        self.target = str(folder / "target")
        self.started = str(folder / "started")
        os.mkfifo(self.target)
        os.mkfifo(self.started)
        (folder / "watcher_of_the_test.py").write_text(_WATCHER)
        found = os.environ.get("PYTHONPATH")
        path = os.pathsep.join((str(folder), *([found] if found else [])))
        self.dead_man = DeadMan(
            "watcher_of_the_test", {"PYTHONPATH": path, "STARTED": self.started}
        )

    def await_start(self) -> int:
        """Wait for a process that has begun to keep watch; return its number."""
        return int(Path(self.started).read_text())

    def await_strike(self) -> str:
        return Path(self.target).read_text().strip()

    def arm(self, seconds: float) -> None:
        self.dead_man.arm(now() + seconds, self.target)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.dead_man.close()


def test_it_strikes_at_the_deadline(bench: Bench) -> None:
    bench.dead_man.begin()
    bench.await_start()
    bench.arm(0.01)
    assert bench.await_strike() == "struck"


def test_one_that_was_killed_is_followed_by_another(bench: Bench) -> None:
    bench.dead_man.begin()
    first = bench.await_start()
    handle = os.pidfd_open(first)
    os.kill(first, signal.SIGKILL)
    select.select([handle], [], [])
    os.close(handle)
    bench.arm(0.01)
    assert bench.await_start() == bench.dead_man.pid != first
    assert bench.await_strike() == "struck"


def test_one_that_is_frozen_is_followed_by_another_and_nobody_waits_for_it(bench: Bench) -> None:
    bench.dead_man.begin()
    first = bench.await_start()
    os.kill(first, signal.SIGSTOP)
    for _ in range(10_000):
        bench.arm(1000)
        if bench.dead_man.pid != first:
            break
    assert bench.dead_man.pid != first
    assert bench.await_start() == bench.dead_man.pid
    bench.arm(0.01)
    assert bench.await_strike() == "struck"


def test_one_that_is_frozen_ends_with_its_agent(bench: Bench) -> None:
    bench.dead_man.begin()
    first = bench.await_start()
    os.kill(first, signal.SIGSTOP)
    closing = threading.Thread(target=bench.dead_man.close)
    closing.start()
    closing.join(15.0)
    waits = closing.is_alive()
    if waits:
        os.kill(first, signal.SIGKILL)
        closing.join()
    assert not waits
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
