"""A database server as a process of ours: started, awaited, killed, never left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from zkelect.testing import launcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

__all__ = ["Server", "ServerFailed", "ServerProcess", "as_user", "home"]

_POLL_EVERY: Final = 0.02
_LOG_LINES_TOLD: Final = 30

# Servers die with the thread that started them (launcher.launch), so it is none that a test ends.
_spawner: Final = ThreadPoolExecutor(1, "servers")


class ServerFailed(Exception):
    """A server did not do what was waited for; the end of its log is in the message."""

    def __init__(self, name: str, problem: str, log: Path) -> None:
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        told = "\n".join(text.splitlines()[-_LOG_LINES_TOLD:]) or "(nothing was logged)"
        super().__init__(f"{name} {problem}; the last lines of {log}:\n{told}")


class ServerProcess:
    """One server program; the kernel kills it when this process ends, however it ends.

    :param command: the program, by its full path, and its arguments.
    :param directory: where it runs, and where ``server.log`` gets what it prints.
    :param user: whom it runs as when we are root, as servers refuse to run as root.
    :param environment: variables beside our own.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        user: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = Path(command[0]).name
        self.log = directory / "server.log"
        self._command, self._directory = as_user(user, command), directory
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the process exists; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._alive().pid

    def start(self, answers: Callable[[], bool], *, timeout: float = 60.0) -> None:
        """Start it and wait until it answers.

        :param answers: asked again and again; True when the server serves.
        :param timeout: seconds, above 0.
        :raises ServerFailed: it ended, or does not answer in time; it is killed then.
        """
        self._process = _spawner.submit(self._spawn).result()
        try:
            self.wait("answered", answers, timeout=timeout)
        except BaseException:  # Ctrl-C too must leave no server behind
            self.kill()
            raise

    def wait(self, done: str, condition: Callable[[], bool], *, timeout: float = 60.0) -> None:
        """Wait until the condition holds, for what cannot tell when it happens.

        :param done: what is waited for, as the message says it: "has not … in time".
        :raises ServerFailed: the server ended, or the condition does not hold in time.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            if not self.running:
                raise ServerFailed(self.name, f"ended before it {done}", self.log)
            if time.monotonic() > deadline:
                raise ServerFailed(self.name, f"has not {done} within {timeout:g} s", self.log)
            time.sleep(_POLL_EVERY)

    def kill(self) -> None:
        """End it at once (SIGKILL) and return when it has ended; no-op when it does not run."""
        self.stop(signal.SIGKILL)

    def stop(self, how: signal.Signals = signal.SIGTERM, *, timeout: float = 30.0) -> None:
        """End it by a signal, by SIGKILL after the timeout; return when it has ended."""
        if self._process is None:
            return
        self._process.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop it where it is (SIGSTOP), and return when it stands still."""
        self._alive().send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on after a pause."""
        self._alive().send_signal(signal.SIGCONT)

    def _alive(self) -> subprocess.Popen[bytes]:
        if self._process is None or not self.running:
            raise ServerFailed(self.name, "does not run", self.log)
        return self._process

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), *self._command],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the tests, not for their servers
            )


class Server(ABC):
    """A server with what it needs around it; all of it is there inside a with-block only."""

    process: ServerProcess

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._open(opened)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()

    @abstractmethod
    def _open(self, opened: ExitStack) -> None:
        """Make directory, port and process; the stack ends them in reverse."""


def as_user(user: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs this one as another user, if we are root and one is named.

    setpriv, since the kernel forgets the death signal when a process changes its user.
    """
    if not user or os.geteuid() != 0:
        return list(command)
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    identity = (f"--reuid={user}", f"--regid={user}", "--init-groups")
    return [setpriv, *identity, "--pdeathsig=KILL", "--", *command]


@contextmanager
def home(name: str, user: str = "") -> Iterator[Path]:
    """Lend a directory that belongs to the user, if we are root; deleted afterwards.

    Not pytest's tmp_path: no other user gets in there.
    """
    with tempfile.TemporaryDirectory(prefix=f"zkelect-{name}-", ignore_cleanup_errors=True) as made:
        if user and os.geteuid() == 0:
            shutil.chown(made, user, user)
        yield Path(made)
