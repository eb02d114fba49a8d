"""Candidates as processes: see candidate.py for the words they understand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from election.waiting import WITHIN

__all__ = ["Process"]

CANDIDATE: Final = Path(__file__).parents[1] / "candidate.py"


class Process:
    """A candidate as a process of its own.

    :param arguments: hosts, path, name and options.
    :ivar told: all that it has told, in order.
    """

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(CANDIDATE), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # its children are ended with it
        )
        self.pid = self.process.pid
        self.told: list[dict[str, Any]] = []
        self._ended = False
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def order(self, *words: str) -> None:
        """Give an order, and do not wait."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def does(self, *words: str) -> dict[str, Any]:
        """Give an order, and wait for the event of the same name."""
        count = len(self.all(words[0])) + 1
        self.order(*words)
        return self.wait(words[0], count)

    def all(self, event: str) -> list[dict[str, Any]]:
        with self._heard:
            return [line for line in self.told if line["event"] == event]

    def wait(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait until it has told something that often; return the last of these."""
        with self._heard:
            self._heard.wait_for(lambda: len(self.all(event)) >= count or self._ended, WITHIN)
            assert len(self.all(event)) >= count, f"{event} was not told: {self.told}"
            return self.all(event)[count - 1]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for its end, and return its exit status."""
        status = self.process.wait(WITHIN)
        self._reader.join(WITHIN)
        return status

    def close(self) -> None:
        """Kill it, and all that it has forked."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.end()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._note(json.loads(line))
        self._note(None)

    def _note(self, line: dict[str, Any] | None) -> None:
        with self._heard:
            if line is None:
                self._ended = True
            else:
                self.told.append(line)
            self._heard.notify_all()
