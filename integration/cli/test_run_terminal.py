"""``zkelect run`` on a terminal: its keys reach the command once, and stop no deadline."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Final, Self

import pytest
from cli.command import PROGRAM, environment
from cli.household import HEART, await_death
from election.waiting import WITHIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from zkelect.testing import LocalEnsemble

    Open = Callable[..., "Terminal"]

CTRL_C: Final = b"\x03"
CTRL_Z: Final = b"\x1a"


class Terminal:
    """A shell with job control on a terminal of its own; what is shown there.

    :param script: of the shell.
    """

    def __init__(self, script: str, hosts: str) -> None:
        self._keys, screen = pty.openpty()
        self.shown = ""
        self.shell = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc", "-mc", script],
            stdin=screen,
            stdout=screen,
            stderr=screen,
            env=environment({"ZKELECT_HOSTS": hosts}),
        )
        os.close(screen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._keys)  # hangs up: all of them end
        self.shell.kill()
        self.shell.wait(WITHIN)

    def press(self, key: bytes) -> None:
        os.write(self._keys, key)

    def read(self, pattern: str) -> re.Match[str]:
        """Read on until this has been shown; nothing up to there is found again."""
        while (found := re.search(pattern, self.shown)) is None:
            self.shown += os.read(self._keys, 4096).decode("utf-8", "replace")
        self.shown = self.shown[found.end() :]
        return found


@pytest.fixture
def terminal(zookeeper: LocalEnsemble, path: str) -> Iterator[Open]:
    """Run a command on a terminal; words after it are for the shell."""
    opened: list[Terminal] = []

    def begin(
        command: Sequence[str], then: str = "", *, hosts: str = zookeeper.hosts, timeout: int = 2
    ) -> Terminal:
        run = [*PROGRAM, "run", path, "--session-timeout", str(timeout), "--", *command]
        opened.append(Terminal(f"{shlex.join(run)}; echo status $?; {then}", hosts))
        return opened[-1]

    yield begin
    for each in opened:
        with each:
            pass


def test_h70_ctrl_c_is_heard_once(terminal: Open) -> None:
    run = terminal([*HEART, "SIGINT"])
    run.read("beat")
    run.press(CTRL_C)
    run.read("SIGINT")
    assert "SIGINT" not in run.read("(?:[^b]*beat ){100}").string


def test_h70_ctrl_c_ends_also_what_does_not_hear_it(terminal: Open) -> None:
    """A shell lets its background jobs ignore the key; what left the session is not reached."""
    run = terminal(["sh", "-c", "sleep 600 & setsid sleep 600 & echo up $!; wait"])
    daemon = int(run.read(r"up (\d+)")[1])
    run.press(CTRL_C)
    assert run.read(r"status (\d+)")[1] == "130"
    await_death(daemon)


def test_h70_ctrl_c_is_passed_on_to_who_has_left_the_terminal(terminal: Open) -> None:
    run = terminal(["setsid", *HEART, "SIGINT"])
    run.read("beat")
    run.press(CTRL_C)
    run.read("SIGINT")


def test_it_reads_the_terminal(terminal: Open) -> None:
    run = terminal(["sh", "-c", "echo ask; read x; echo heard $x"])
    run.read("ask")
    run.press(b"word\n")
    run.read("heard word")
    assert run.read(r"status (\d+)")[1] == "0"


def test_h72_ctrl_z_stops_both_and_the_command_is_dead_by_the_deadline(terminal: Open) -> None:
    run = terminal(["sh", "-c", "echo up $$; sleep 600"], then="read x; fg; echo status $?")
    command = int(run.read(r"up (\d+)")[1])
    run.press(CTRL_Z)
    run.read("Stopped")
    await_death(command)
    run.press(b"\n")
    run.read(r"lost \(lapsed\)")
    assert run.read(r"status (\d+)")[1] == "70"


def test_ctrl_z_and_back_within_the_lease_loses_nothing(
    terminal: Open, patient: LocalEnsemble
) -> None:
    command = ["sh", "-c", "echo up; read x; echo heard $x"]
    run = terminal(command, then="fg; echo status $?", hosts=patient.hosts, timeout=30)
    run.read("up")
    run.press(CTRL_Z)
    run.read("Stopped")
    run.press(b"word\n")
    run.read("heard word")
    assert run.read(r"status (\d+)")[1] == "0"
