"""Completion by the shells themselves, on a terminal, as a person presses Tab."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from cli.command import environment
from election.waiting import WITHIN, boottime
from servers.packages import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAGE: Final = Path(__file__).parents[2] / "docs" / "cli.md"
SECTION: Final = PAGE.read_text("utf-8").partition("## Completion")[2]
SCRIPTS: Final = re.findall(r"^zkelect completion (\w+) +> ~/(\S+)$", SECTION, re.MULTILINE)
(ZSH,) = re.findall(r"^```sh\n(fpath.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
BEGIN: Final = {
    "bash": "source ~/.local/share/bash-completion/completions/zkelect",
    "zsh": ZSH.strip().replace("\n", "; ") + " -u",  # it would ask because the tests run as root
}
QUIET: Final = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}


class Terminal:
    """A shell on a terminal.

    :ivar shown: all that it has shown.
    """

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        self.shown = b""
        self._end, shell = os.openpty()
        self._process = subprocess.Popen(
            command, stdin=shell, stdout=shell, stderr=shell, env=env, start_new_session=True
        )
        os.close(shell)

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def wait(self, *texts: bytes) -> None:
        """Wait until it has shown all of this, since the last time."""
        deadline = boottime() + WITHIN
        while not all(text in self.shown for text in texts):
            ready, _, _ = select.select([self._end], [], [], deadline - boottime())
            assert ready, f"{texts} are not shown: {self.shown!r}"
            self.shown += os.read(self._end, 65536)
        self.shown = b""

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._end)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """With ``zkelect`` on PATH, the scripts where the page says, and nothing else at home."""
    script = tmp_path / "zkelect"
    script.write_text(f"#!{sys.executable}\nfrom zkelect.cli import start\nstart()\n", "ascii")
    script.chmod(0o755)
    home = {"HOME": str(tmp_path), "TERM": "dumb", "LC_ALL": "C.UTF-8", "PS1": "$ "}
    home["XDG_CONFIG_HOME"] = f"{tmp_path}/.config"
    env = environment({**home, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    for shell, place in SCRIPTS:
        file = tmp_path / place
        file.parent.mkdir(parents=True)
        with file.open("wb") as out:
            subprocess.run(["zkelect", "completion", shell], env=env, stdout=out, check=True)
    return env


def test_the_page_has_a_line_for_each_shell() -> None:
    assert [shell for shell, _ in SCRIPTS] == ["bash", "zsh", "fish"]


@pytest.fixture
def terminal(env: dict[str, str]) -> Iterator[Callable[[str], Terminal]]:
    with ExitStack() as stack:

        def start(shell: str) -> Terminal:
            command = [program(shell), *QUIET[shell]]
            found = stack.enter_context(closing(Terminal(command, env)))
            found.type(f"{BEGIN[shell]}; echo is-$((6 * 7))\r")
            found.wait(b"is-42")
            return found

        yield start


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("zkelect switcho", b"switchover "),
        ("zkelect status --show-se", b"--show-session-id "),
        ("zkelect status -o js", b"json "),
        ("zkelect completion fi", b"fish "),
    ],
)
def test_tab_completes(
    shell: str, typed: str, shown: bytes, terminal: Callable[[str], Terminal]
) -> None:
    there = terminal(shell)
    there.type(f"{typed}\t")
    there.wait(shown)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_shows_what_there_is(shell: str, terminal: Callable[[str], Terminal]) -> None:
    there = terminal(shell)
    there.type("zkelect res\t\t")
    there.wait(b"resume", b"resign")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("zkelect switcho", ["switchover\tLet another candidate lead."]),
        ("zkelect status -o js", ["json"]),
        ("zkelect completion ", ["bash", "zsh", "fish"]),
        ("zkelect status /elections/", []),  # no server is asked
    ],
)
def test_fish_completes(line: str, found: list[str], env: dict[str, str]) -> None:
    """``complete -C`` gives what Tab would."""
    fish = [program("fish"), "-c", f"complete -C '{line}'"]
    done = subprocess.run(fish, env=env, capture_output=True, text=True, check=True)
    assert (sorted(done.stdout.splitlines()), done.stderr) == (sorted(found), "")


def test_a_shell_that_we_do_not_know_is_wrong_usage(env: dict[str, str]) -> None:
    command = ["zkelect", "completion", "tcsh"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (64, "")
    assert "'bash', 'zsh', 'fish'" in done.stderr
