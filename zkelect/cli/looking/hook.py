"""A program that is run at each change: by itself, one at a time, never through a shell."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import click

from zkelect.cli.exits import NOT_EXECUTABLE, NOT_FOUND

__all__ = ["Hook", "HookNotExecutable", "HookNotFound"]

_GRACE: Final = 5.0
"""Seconds that a hook has to end when we are told to, before it is killed."""

_STDERR: Final = 2


class HookNotFound(click.ClickException):
    """There is no such program; nothing was begun."""

    exit_code = NOT_FOUND


class HookNotExecutable(click.ClickException):
    """There is such a file, and it may not be run; nothing was begun."""

    exit_code = NOT_EXECUTABLE


class Hook:
    """Runs one program, with what has changed in its environment.

    It has our standard error for its output, since our own output is data, and nothing to read.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a command line: words, quoted as for a shell; nothing in them is expanded.

        :raises click.BadParameter: it has no words, or a quote without end.
        :raises HookNotFound, HookNotExecutable: its first word is no program.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise click.BadParameter(f"--exec: {error}") from error
        if not words:
            raise click.BadParameter("--exec: no program")
        if shutil.which(words[0]) is None:
            if Path(words[0]).exists():
                raise HookNotExecutable(f"--exec: {words[0]}: not executable")
            raise HookNotFound(f"--exec: {words[0]}: not found")
        return cls(words)

    def run(self, variables: Mapping[str, str]) -> str | None:
        """Run it to its end.

        :returns: what went wrong, in words; None: it ended with status 0.
        """
        try:
            process = subprocess.Popen(
                self._words,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                process_group=0,  # so that all it has started is ended with it
            )
        except OSError as error:
            return f"{self._words[0]}: could not be started: {error.strerror}"
        try:
            status = process.wait()
        except BaseException:
            _end(process)
            raise
        return None if status == 0 else f"{self._words[0]}: {_ending(status)}"


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ending(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
