"""Who is of a folder, and ends with it; and who is left alone."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from election.waiting import WITHIN, until
from recipes.reaper import reaping

if TYPE_CHECKING:
    from collections.abc import Callable

SLEEP: Final = ["/bin/sleep", "600"]
SHELL: Final = ["/bin/sh", "-c", "/bin/sleep 600; exit"]


def working_there(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(SLEEP, cwd=folder, start_new_session=True)


def logging_there(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(SLEEP, stderr=log, cwd="/", start_new_session=True)


def naming_it(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*SHELL, str(folder / "x")], cwd="/", start_new_session=True)


def given_it(folder: Path) -> subprocess.Popen[bytes]:
    environment = {"TMPDIR": str(folder)}
    return subprocess.Popen(SLEEP, env=environment, cwd="/", start_new_session=True)


@pytest.mark.parametrize("start", [working_there, logging_there, naming_it, given_it])
def test_who_is_of_the_folder_ends_with_the_block(
    start: Callable[[Path], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with reaping(tmp_path):
        process = start(tmp_path)
    assert process.wait(WITHIN) == -signal.SIGKILL


def test_children_end_too(tmp_path: Path) -> None:
    with reaping(tmp_path):
        shell = naming_it(tmp_path)
        until(lambda: children(shell.pid), "it has a child")
        (child,) = children(shell.pid)
    assert shell.wait(WITHIN) == -signal.SIGKILL
    until(lambda: not Path(f"/proc/{child}/exe").exists(), "the child has ended")


def test_whoever_sits_at_a_terminal_there_is_left_alone(tmp_path: Path) -> None:
    """And a folder whose name begins in the same way is another one."""
    near, other = tmp_path / "a", tmp_path / "ab"
    near.mkdir()
    other.mkdir()
    with ExitStack() as stack:
        _keyboard, terminal = (stack.enter_context(os.fdopen(end, "rb")) for end in pty.openpty())
        away = stack.enter_context(working_there(other))
        stack.callback(away.kill)
        with reaping(near):
            command = ["/usr/bin/setsid", "--ctty", *SLEEP]
            seated = stack.enter_context(subprocess.Popen(command, cwd=near, stdin=terminal))
            stack.callback(seated.kill)
            until(lambda: name_of(seated.pid) == "sleep", "it has the terminal")
        assert seated.poll() is None
        assert away.poll() is None


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
