"""H46: threads that get no time: one holds the interpreter, or the machine is busy."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

import zkelect
from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Operator, Process

    from zkelect.testing import LocalEnsemble

LONG = 10
T = 2
boottime = SystemClock().boottime


def hold_the_interpreter(seconds: int) -> None:
    """Keep every other thread of Python from running, as a C extension does that forgets."""
    assert ctypes.PyDLL(None).sleep(seconds) == 0  # in one call: between two others may run


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that want all the time there is."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def test_h46_the_interpreter_held_for_half_a_timeout_changes_nothing(
    roomy: LocalEnsemble,
    cast: Callable[..., Actor],
    spawn: Callable[..., Process],
    operate: Callable[[str], Operator],
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    operator = operate(roomy.hosts)
    a = cast("A", server=roomy.hosts, session_timeout=LONG)
    term = a.lead()
    b = spawn("B", hosts=roomy.hosts)
    eventually(lambda: len(operator.nodes(path)) == 2, "B waits")
    hold_the_interpreter(LONG // 2)
    assert term.check() == term.token
    renewed = term.deadline
    eventually(lambda: term.deadline > renewed, "the lease is renewed")
    assert not b.all("elected")
    assert a.diary.all("deposed") == []


def test_h46_after_the_interpreter_was_held_for_two_timeouts_the_first_check_raises(
    cast: Callable[..., Actor],
    spawn: Callable[..., Process],
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    a = cast("A")
    term = a.lead()
    b = spawn("B")
    eventually(lambda: len(operator.nodes(path)) == 2, "B waits")
    with a.session.lock:  # so that no other thread of ours says so first
        hold_the_interpreter(2 * T)
        with pytest.raises(zkelect.LeadershipLost, match="lapsed"):
            term.check()
    assert b.wait("elected")["token"] > str(term.token)
    assert a.diary.wait("deposed").leadership is term


def test_h46_a_machine_twice_as_busy_as_it_can_be_changes_nothing(
    roomy: LocalEnsemble, cast: Callable[..., Actor]
) -> None:
    a, b = (cast(name, server=roomy.hosts, session_timeout=LONG) for name in "AB")
    term = a.lead()
    b.queue()
    with busy(2 * (os.cpu_count() or 1)):
        least = term.remaining()
        until = boottime() + 3 * LONG
        while boottime() < until:
            assert not term.wait_lost(0.05)
            least = min(least, term.remaining())
    print(f"the least lease that was left: {least:.2f} s of {LONG:g} s")
    assert term.check() == term.token
    assert b.diary.all("granted") == []
