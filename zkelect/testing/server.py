"""One ZooKeeper server: a Java process with a port, a directory and a log of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from zkelect.errors import Misuse, Unreachable
from zkelect.testing import launcher
from zkelect.testing.configuration import JVM_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from zkelect.testing.distribution import Distribution

__all__ = ["LocalServer", "ServerFailed", "ask"]

_MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_POLL_EVERY: Final = 0.02
_ANSWER_WITHIN: Final = 1.0
_END_WITHIN: Final = 10.0
_LOG_LINES_TOLD: Final = 20


class ServerFailed(Unreachable):
    """A local server did not do what was waited for.

    :ivar address: whose. :ivar log_path: its log, kept. :ivar log_tail: the last lines of it.
    :ivar port_taken: another program listens on one of its ports.
    """

    def __init__(self, address: str, problem: str, log_path: Path) -> None:
        log = log_path.read_text("utf-8", "replace") if log_path.exists() else ""
        self.address = address
        self.log_path = log_path
        tail = "\n".join(log.splitlines()[-_LOG_LINES_TOLD:])
        self.log_tail: str = tail or "(nothing was logged)"
        self.port_taken: bool = "Address already in use" in log
        super().__init__(
            f"ZooKeeper server {address} {problem}; the last lines of {log_path}:\n{self.log_tail}"
        )


class LocalServer:
    """A server of a :class:`LocalEnsemble`; made by it, not by hand.

    Its process is killed by the kernel when this one ends, however it ends.
    """

    def __init__(
        self,
        *,
        address: str,
        directory: Path,
        distribution: Distribution,
        java_options: Sequence[str],
        spawner: Executor,
    ) -> None:
        """Describe a server whose ``zoo.cfg`` is in ``directory``.

        :param address: ``host:port`` for clients.
        :param spawner: runs on one thread that outlives the server: see ``launcher.launch``.
            The server starts in the network namespace of that thread.
        """
        self.address = address
        self.log_path: Path = directory / "server.log"
        self._directory = directory
        self._command = _command(distribution, directory, java_options)
        self._spawner = spawner
        self._process: subprocess.Popen[bytes] | None = None
        self._paused = False

    def __repr__(self) -> str:
        state = "paused" if self.paused else "running" if self.running else "stopped"
        return f"<LocalServer {self.address} {state}>"

    # --- looking --------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Its process exists; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def paused(self) -> bool:
        """Its process exists, but is stopped by :meth:`pause`."""
        return self.running and self._paused

    @property
    def pid(self) -> int | None:
        """The process id, None while it does not run."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def mode(self) -> str | None:
        """``leader``, ``follower``, ``standalone``, …; None while it serves nobody."""
        if not self.running or self._paused:
            return None
        found = re.search(r"^Mode: (.+)$", ask(self.address, "srvr"), re.MULTILINE)
        return found[1] if found else None

    # --- doing ----------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the process and do not wait for it.

        :raises Misuse: it runs already, or its ensemble has been stopped.
        """
        if self.running:
            raise Misuse(f"server {self.address} runs already, as process {self.pid}")
        self._paused = False
        try:
            spawned = self._spawner.submit(self._spawn)
        except RuntimeError as error:
            raise Misuse(f"server {self.address}: its ensemble has been stopped") from error
        spawned.result()

    def start(self, *, timeout: float = 60.0) -> None:
        """Start the process and wait until it answers on its port.

        It may answer before it can serve: that takes a majority of the ensemble; see
        :meth:`wait_ready`. The data directory is the one it had before.

        :param timeout: seconds, above 0.
        :raises Misuse: it runs already.
        :raises ServerFailed: it ended, or did not answer in time.
        """
        self.launch()
        self._wait("answered", lambda: ask(self.address, "ruok") == "imok", timeout)

    def wait_ready(self, *, timeout: float = 60.0) -> None:
        """Wait until it serves clients.

        :param timeout: seconds, above 0.
        :raises ServerFailed: it ended, or does not serve in time.
        """
        self._wait("served", lambda: self.mode is not None, timeout)

    def kill(self) -> None:
        """End the process at once (SIGKILL), and return when it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End the process by SIGTERM, after ten seconds by SIGKILL."""
        if self.paused:
            self.resume()
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_WITHIN)
        self.kill()

    def pause(self) -> None:
        """Stop the process where it is (SIGSTOP), and return when it stands still."""
        process = self._running_process()
        process.send_signal(signal.SIGSTOP)
        self._paused = True
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        self._running_process().send_signal(signal.SIGCONT)
        self._paused = False

    # --- within ---------------------------------------------------------------------------

    def _spawn(self) -> None:
        """Make the process; keep it here, for Ctrl-C may take away whoever waits for it."""
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), *self._command],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the program, not for its servers
            )

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or not self.running:
            raise Misuse(f"server {self.address} does not run; start() it first")
        return self._process

    def _wait(self, done: str, condition: Callable[[], bool], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if not self.running:
                status = "never started" if self._process is None else self._process.returncode
                self._fail(f"ended before it {done} (exit status {status})")
            if time.monotonic() > deadline:
                self._fail(f"has not {done} within {timeout:g} s")
            time.sleep(_POLL_EVERY)

    def _fail(self, problem: str) -> None:
        raise ServerFailed(self.address, problem, self.log_path)


def ask(address: str, word: str) -> str:
    """Send a four-letter word and return the answer; empty when there is none within 1 s.

    ZooKeeper Administrator's Guide, "The Four Letter Words".
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _ANSWER_WITHIN) as connection:
            connection.sendall(word.encode("ascii"))
            with connection.makefile("rb") as answer:
                return answer.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _command(distribution: Distribution, directory: Path, java_options: Sequence[str]) -> list[str]:
    class_path = os.pathsep.join([str(directory), *distribution.class_path])
    return [
        str(distribution.java),
        *JVM_OPTIONS,
        *java_options,
        "-cp",
        class_path,
        _MAIN_CLASS,
        str(directory / "zoo.cfg"),
    ]
