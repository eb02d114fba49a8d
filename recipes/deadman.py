"""The dead-man's switch, the agent's side: a process of its own is told deadlines.

The agent may hang, be frozen, or be killed; then nobody would stop its primary when the lease
ends, but that process; see :mod:`.watching`. It may be frozen or killed itself: then another one
takes its place.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from zkelect.recipes.watching import NEVER

__all__ = ["DeadMan"]

_PATIENCE: Final = 2.0
"""Seconds for it to end by itself."""


class DeadMan:
    """Keeps one such process.

    :param module: what it runs; it calls :func:`.watching.keep_watch`.
    :param environment: variables beside our own, such as secrets, which are no arguments.
    """

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        self._module = module
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Number of the process that is told now; None: there is none."""
        process = self._process
        return None if process is None else process.pid

    def begin(self) -> None:
        """Start the process now: it needs a moment, and a deadline may be near."""
        self._tell(NEVER)

    def arm(self, deadline: float, target: str) -> None:
        """Have the target struck at that instant of the boot clock, unless told otherwise.

        :param target: one word, handed to the process.
        """
        self._tell(f"{deadline!r} {target}")

    def disarm(self) -> None:
        """Have it left alone."""
        if self._process is not None:
            self._tell(NEVER)

    def close(self) -> None:
        """Leave the target alone, and end the process."""
        self.disarm()
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                _end(process)

    def _tell(self, order: str) -> None:
        """Hand over an order; to another process if the last one has ended, or does not listen."""
        line = f"{order}\n".encode()
        with self._lock:
            if self._process is None or not _heard(self._process, line):
                self._process = self._launch()
                _write(self._process, line)

    def _launch(self) -> subprocess.Popen[bytes]:
        """Start it in a session of its own: what ends the agent's group does not end it."""
        process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            cwd="/",
            env=self._environment,
        )
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process


def _heard(process: subprocess.Popen[bytes], line: bytes) -> bool:
    """Write the line; a process that is frozen, so that the pipe has become full, is killed.

    To wait until it reads would stop whoever renews the deadline. A full pipe is a thousand orders
    or so, more than are given while a process starts on a busy machine.
    """
    try:
        _write(process, line)
    except (BlockingIOError, BrokenPipeError):
        process.kill()
        _end(process)
        return False
    return True


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    os.write(process.stdin.fileno(), line)  # in one piece or not at all; see pipe(7)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it go; one that stays, though it has nothing to do, is killed."""
    assert process.stdin is not None
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
        return
    process.kill()
    process.wait()
