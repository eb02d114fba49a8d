"""The candidates of the demo: real processes, so that SIGSTOP and SIGKILL are real."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self

from zkelect.cli.demo.event import Event
from zkelect.session.clock import SystemClock
from zkelect.testing import launcher

__all__ = ["PROGRAM", "CandidateProcess", "Candidates"]

PROGRAM: Final = ("-m", "zkelect.cli.demo.candidate")
"""What Python runs as a candidate."""

_now: Final = SystemClock().boottime


class CandidateProcess:
    """One candidate: a process that takes orders and tells events.

    The kernel kills it when the thread that made it ends, however that ends; Ctrl-C does
    not reach it, so that the demo stops its candidates in its own order.

    :ivar log_path: what it wrote on standard error.
    """

    def __init__(
        self,
        name: str,
        program: Sequence[str],
        log_path: Path,
        heard: queue.SimpleQueue[Event],
    ) -> None:
        self.name: Final = name
        self.log_path: Final = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*_tied_to_this_process(), sys.executable, "-P", *program],
                env={**os.environ, "PYTHONPATH": _import_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, args=(heard,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def order(self, word: str) -> None:
        """Give it an order; one that has ended does not hear it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()

    def freeze(self) -> float:
        """Stop it where it is (SIGSTOP); return the instant, once it stands still."""
        at = self._signal(signal.SIGSTOP)
        with suppress(ChildProcessError):  # it has ended, which it will be heard to have
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        return at

    def wake(self) -> float:
        """Let it go on (SIGCONT); return the instant."""
        return self._signal(signal.SIGCONT)

    def kill(self) -> float:
        """End it at once (SIGKILL), also a frozen one; return the instant, once it has ended."""
        at = self._signal(signal.SIGKILL)
        self._process.wait()
        return at

    def close(self) -> None:
        """Kill it, if it still runs, and let go of its pipes."""
        self.kill()
        self._reader.join()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdout.close()
        with suppress(BrokenPipeError):  # an order that it never read
            self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> float:
        at = _now()
        self._process.send_signal(number)
        return at

    def _read(self, heard: queue.SimpleQueue[Event]) -> None:
        """Pass on what it tells; the last thing, by whatever cause, is its end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with suppress(json.JSONDecodeError):  # killed in the middle of a line
                heard.put(Event.decode(line, self.name))
        status = self._process.wait()
        heard.put(Event(kind="ended", at=_now(), name=self.name, facts={"status": status}))


class Candidates(Mapping[str, CandidateProcess]):
    """The candidate processes by name, and what they tell, in the order in which it arrives.

    :param names: of the candidates; one process is started for each.
    :param program: what Python runs for each of them.
    :param hosts: of the servers. :param log: the file that the candidates write.
    """

    def __init__(
        self, names: Iterable[str], *, program: Sequence[str], hosts: str, log: Path
    ) -> None:
        self._heard = queue.SimpleQueue[Event]()
        self._started: dict[str, CandidateProcess] = {}
        self._opened = ExitStack()
        with ExitStack() as stack:
            for name in names:
                arguments = (*program, hosts, name, str(log))
                path = log.with_name(f"{name}.log")
                process = CandidateProcess(name, arguments, path, self._heard)
                stack.callback(process.close)
                self._started[name] = process
            self._opened = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def __getitem__(self, name: str) -> CandidateProcess:
        return self._started[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._started)

    def __len__(self) -> int:
        return len(self._started)

    def hear(self, timeout: float) -> Event | None:
        """Wait for the next event; None when none came within so many seconds."""
        try:
            return self._heard.get(timeout=timeout)
        except queue.Empty:
            return None


def _tied_to_this_process() -> Sequence[str]:
    return sys.executable, "-I", "-S", launcher.__file__, str(os.getpid())


def _import_path() -> str:
    """Return where a candidate shall import from: what this process did, and nothing else.

    Left to itself, ``-m`` looks first in the current folder, where there may be another zkelect.
    """
    return os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
