"""A candidate of any library, as a process that tells what it believes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from election.waiting import WITHIN, boottime

from zkelect.testing import launcher

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Candidate", "assert_one_leader_at_a_time"]


class Candidate:
    """A candidate that speaks as ``program.py`` says; the kernel kills it when we die.

    :param command: the program, by its full path, and its arguments.
    :ivar told: all that it has told, in order, with the instants on the boot clock.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._offset = boottime() - time.monotonic()
        tied = [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid())]
        self._process = subprocess.Popen(
            [*tied, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.told: list[dict[str, Any]] = []
        self._ended = False
        self._killed: float = math.inf
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def led(self) -> list[tuple[float, float]]:
        """From when to when it has led, as it believes itself: never longer than it lived."""
        spans: list[tuple[float, float]] = []
        for line in self.told:
            if line["event"] == "elected":
                spans.append((line["at"], self._killed))
            elif line["event"] in ("lost", "left") and spans:
                began, ended = spans[-1]
                spans[-1] = (began, min(ended, line["at"]))
        return spans

    def all(self, event: str) -> list[dict[str, Any]]:
        with self._heard:
            return [line for line in self.told if line["event"] == event]

    def wait(self, event: str) -> dict[str, Any]:
        """Wait until it has told something; return the first of these lines."""
        with self._heard:
            self._heard.wait_for(lambda: self.all(event) or self._ended, WITHIN)
            assert self.all(event), f"{event} was not told: {self.told}"
            return self.all(event)[0]

    def leave(self) -> None:
        """Have it go as its library has it, and wait until it says that it has."""
        assert self._process.stdin is not None
        self._process.stdin.write("leave\n")
        self._process.stdin.flush()
        self.wait("left")

    def pause(self) -> None:
        """Stop it where it is, and return when it stands still."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once (SIGKILL), and wait until it has ended."""
        self._killed = min(self._killed, boottime())
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            self._note({**told, "at": told["at"] + self._offset})
        self._note(None)

    def _note(self, line: dict[str, Any] | None) -> None:
        with self._heard:
            if line is None:
                self._ended = True
            else:
                self.told.append(line)
            self._heard.notify_all()


def assert_one_leader_at_a_time(*candidates: Candidate) -> None:
    """No two have led at the same instant, by what they believed themselves."""
    spans = sorted(span for candidate in candidates for span in candidate.led)
    for (began, ended), (next_began, _) in pairwise(spans):
        assert ended <= next_began, f"led from {began} to {ended}, the next one from {next_began}"
