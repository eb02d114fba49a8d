"""The processes of a run: they take orders as lines, and die with the one that started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zkelect.testing import launcher

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Process", "wait_until"]

_CHAOS: Final = Path(__file__).parent
_LOOK_EVERY: Final = 0.02


class Process:
    """One role of the run (see ``chaos.roles``) as a process of its own.

    :param told: called with each line it prints, on a thread; None: they are passed over.
    :param log: the file for its standard error; None: passed over.
    """

    def __init__(
        self,
        role: str,
        settings: dict[str, Any],
        *,
        told: Callable[[str], None] | None = None,
        log: Path | None = None,
    ) -> None:
        with (Path(os.devnull) if log is None else log).open("ab") as errors:
            self._process = subprocess.Popen(
                [*_tied(), sys.executable, str(_CHAOS), role, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C is for the director; its forks die with it
            )
        self.paused = False
        self._told = told
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    def order(self, word: str) -> None:
        """Give it a line; harmless when it has ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()

    def pause(self) -> None:
        """Stop it where it is (SIGSTOP), and return when it stands still."""
        self._signal(signal.SIGSTOP)
        self.paused = True
        with suppress(ChildProcessError):  # it has been killed and reaped
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on (SIGCONT); harmless when it is not paused."""
        self._signal(signal.SIGCONT)
        self.paused = False

    def kill(self) -> None:
        """End it and all that it has forked, at once."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()

    def wait(self, timeout: float) -> bool:
        """Wait for its end; False when it has not come in time."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if self._told is not None:
                self._told(line.rstrip("\n"))


def wait_until(condition: Callable[[], object], what: str, *, timeout: float = 30.0) -> None:
    """Wait for what cannot tell when it happens.

    :raises TimeoutError: it did not happen in time.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        time.sleep(_LOOK_EVERY)


def _tied() -> list[str]:
    """Return the words before a command that tie it to this process's life."""
    return [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid())]
