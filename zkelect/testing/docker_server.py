"""One ZooKeeper server in a container."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from zkelect.errors import Misuse
from zkelect.testing.docker_engine import translated
from zkelect.testing.docker_errors import EngineFailed, Removed
from zkelect.testing.server import ServerFailed, ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from docker.models.containers import Container

__all__ = ["DockerServer"]

_POLL_EVERY: Final = 0.05
_END_WITHIN: Final = 10
_GONE: Final = "removed"


class DockerServer:
    """A server of a :class:`DockerEnsemble`; made by it, not by hand."""

    def __init__(self, *, container: Container, address: str, log_path: Path) -> None:
        """Describe a server.

        :param container: the server's, already created.
        :param address: ``host:port`` at which clients reach it.
        :param log_path: where its log is written when somebody wants to read it.
        """
        self.address = address
        self.log_path = log_path
        self._container = container

    def __repr__(self) -> str:
        return f"<DockerServer {self.address} {self._container.name}>"

    # --- looking --------------------------------------------------------------------------

    @property
    def container(self) -> str:
        """The container's name, for ``docker logs`` and ``docker exec``."""
        return str(self._container.name)

    @property
    def running(self) -> bool:
        """Its process exists; a paused one does."""
        return self._status() in {"running", "paused"}

    @property
    def paused(self) -> bool:
        """Its process exists, but is stopped by :meth:`pause`."""
        return self._status() == "paused"

    @property
    def mode(self) -> str | None:
        """``leader``, ``follower``, ``standalone``, …; None while it serves nobody."""
        if self._status() != "running":
            return None
        found = re.search(r"^Mode: (.+)$", ask(self.address, "srvr"), re.MULTILINE)
        return found[1] if found else None

    def save_log(self) -> None:
        """Write what it has logged so far to ``log_path``."""
        with translated(f"read the log of {self.container}"):
            self.log_path.write_bytes(self._container.logs())

    def fail(self, problem: str) -> NoReturn:
        """Raise ServerFailed, with the end of the log."""
        with suppress(Removed):
            self.save_log()
        raise ServerFailed(self.address, problem, self.log_path)

    # --- doing ----------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the process and do not wait for it. Its data are those it had before.

        :raises Misuse: it runs already, or its ensemble has been stopped.
        """
        match self._status():
            case "running" | "paused":
                raise Misuse(f"server {self.address} runs already, in {self.container}")
            case "removed":
                raise Misuse(f"server {self.address}: its ensemble has been stopped")
        with translated(f"start {self.container}"):
            self._container.start()

    def start(self, *, timeout: float = 60.0) -> None:
        """Start the process and wait until it answers on its port.

        It may answer before it can serve: that takes a majority of the ensemble; see
        :meth:`wait_ready`.

        :param timeout: seconds, above 0.
        :raises Misuse: it runs already, or its ensemble has been stopped.
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
        try:
            with translated(f"kill {self.container}"):
                self._container.kill()
                self._container.wait(timeout=_END_WITHIN)
        except EngineFailed:  # also where it does not run
            if self.running:
                raise

    def stop(self) -> None:
        """End the process by SIGTERM, after ten seconds by SIGKILL."""
        if self.paused:
            self.resume()
        if self.running:
            with translated(f"stop {self.container}"):
                self._container.stop(timeout=_END_WITHIN)

    def pause(self) -> None:
        """Stop the process where it is (``docker pause``), and return when it stands still."""
        self._check_running()
        if not self.paused:
            with translated(f"pause {self.container}"):
                self._container.pause()

    def resume(self) -> None:
        """Let a paused process go on."""
        self._check_running()
        if self.paused:
            with translated(f"resume {self.container}"):
                self._container.unpause()

    # --- within ---------------------------------------------------------------------------

    def _status(self) -> str:
        """Ask the engine: "created", "running", "paused", "exited", … or "removed"."""
        try:
            with translated(f"look at {self.container}"):
                self._container.reload()
        except Removed:
            return _GONE
        return self._container.status

    def _check_running(self) -> None:
        if not self.running:
            raise Misuse(f"server {self.address} does not run; start() it first")

    def _wait(self, done: str, condition: Callable[[], bool], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if not self.running:
                self.fail(f"ended before it {done} ({self._end()})")
            if time.monotonic() > deadline:
                self.fail(f"has not {done} within {timeout:g} s")
            time.sleep(_POLL_EVERY)

    def _end(self) -> str:
        status = self._status()
        if status != "exited":
            return status
        return f"exit status {self._container.attrs['State']['ExitCode']}"
