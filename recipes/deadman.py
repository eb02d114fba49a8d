"""The dead-man's switch, the agent's side: a process of its own is told deadlines.

The agent may hang, be frozen, or be killed; then nobody would stop its primary when the lease
ends, but that process; see :mod:`.watching`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping

from zkelect.recipes.watching import NEVER

__all__ = ["DeadMan"]


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
                assert process.stdin is not None
                process.stdin.close()
                process.wait()

    def _tell(self, order: str) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = self._launch()
            assert self._process.stdin is not None
            self._process.stdin.write(f"{order}\n".encode())
            self._process.stdin.flush()

    def _launch(self) -> subprocess.Popen[bytes]:
        """Start it in a session of its own: what ends the agent's group does not end it."""
        return subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env=self._environment,
        )
