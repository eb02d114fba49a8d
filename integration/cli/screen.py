"""A terminal of a given size, in which a command runs: tmux draws it, and tells what it shows."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
from typing import TYPE_CHECKING, Final, Self

from cli.command import PROGRAM, environment
from election.waiting import until
from servers.packages import program

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Screen"]

_HISTORY: Final = "10000"
_numbers: Final = itertools.count()


class Screen:
    """``zkelect`` in a terminal; leave the block, and the terminal is closed.

    :param width, height: in cells. :param env: changes to the environment, None takes away.
    """

    def __init__(
        self, *arguments: str, env: Mapping[str, str | None], width: int = 80, height: int = 24
    ) -> None:
        self._socket = f"zkelect-{os.getpid()}-{next(_numbers)}"
        command = shlex.join([*PROGRAM, *arguments])
        self._tmux(
            *("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height)),
            *("-e", "LESS=", f'{command}; echo "<$?>"; cat'),
            env={**environment(env), "LANG": "C.UTF-8", "TERM": "screen-256color"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server", check=False)

    def text(self) -> str:
        """Return what it shows now, without the empty lines below."""
        return self._tmux("capture-pane", "-p").rstrip("\n") + "\n"

    def all(self) -> str:
        """Return what it shows, and what has been scrolled out of it."""
        return self._tmux("capture-pane", "-p", "-S", f"-{_HISTORY}").rstrip("\n") + "\n"

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names: ``C-c``, ``q``, ``G``."""
        self._tmux("send-keys", *keys)

    def await_text(self, *wanted: str) -> str:
        """Wait until it shows all of this; return the screen."""
        shown: list[str] = []

        def shows() -> bool:
            shown[:] = [self.text()]
            return all(text in shown[0] for text in wanted)

        try:
            until(shows, f"the screen shows {wanted}")
        except AssertionError as late:
            raise AssertionError(f"{late}, but:\n{shown[0]}") from None
        return shown[0]

    def await_end(self) -> int:
        """Wait for the command's end, and return its exit status."""
        until(lambda: "<" in self.text() and ">" in self.text(), "the command has ended")
        return int(self.text().rpartition("<")[2].partition(">")[0])

    def _tmux(
        self, *arguments: str, env: Mapping[str, str] | None = None, check: bool = True
    ) -> str:
        done = subprocess.run(
            [program("tmux"), "-L", self._socket, *arguments],
            env=None if env is None else dict(env),
            stdout=subprocess.PIPE,
            check=check,
            text=True,
        )
        return done.stdout
