"""A real ZooKeeper on this machine, one server or several, for as long as a block lasts."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import attrs

from zkelect.errors import InvalidArgument, Misuse
from zkelect.testing.configuration import LOG_CONFIGURATIONS, Ports, Settings
from zkelect.testing.directories import unmade
from zkelect.testing.distribution import find_server
from zkelect.testing.ensembles import find_leader
from zkelect.testing.ports import Port
from zkelect.testing.server import LocalServer, ServerFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor
    from types import TracebackType

    from zkelect.testing.distribution import Distribution

__all__ = ["LocalEnsemble", "Site"]

_LARGEST: Final = 7
_PORT_CHOICES: Final = 3
_POLL_EVERY: Final = 0.02
_NOT_STARTED: Final = "this ensemble is not started: start() it, or use it in a with-block"
# Ends of a block that are no failure of what ran inside it.
_NO_FAILURE: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


@attrs.frozen
class Site:
    """A place for one server.

    :ivar ports: where it listens. :ivar spawner: runs on one thread, which starts it.
    """

    ports: Ports
    spawner: Executor

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"{self.ports.host}:{self.ports.client}"


class LocalEnsemble:
    """Real ZooKeeper servers on the loopback interface (Linux).

    ::

        with LocalEnsemble(servers=3) as zookeeper:
            client = KazooClient(zookeeper.hosts)
            zookeeper.servers[zookeeper.leader()].kill()

    Servers, ports and data are this object's own: any number of ensembles run side by
    side. When the block ends the servers are killed and everything they wrote is deleted;
    when it ends with an error, or a server failed to start, the directory with the logs is
    kept and its path printed on standard error. When this process dies, however hard, the
    kernel kills the servers; then only the directory is left behind.
    """

    def __init__(
        self,
        servers: int = 1,
        *,
        tick_time: float = 0.2,
        min_session_timeout: float | None = None,
        max_session_timeout: float | None = None,
        durable: bool = False,
        config: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
        start_timeout: float = 60.0,
    ) -> None:
        """Describe an ensemble; :meth:`start`, or the with-block, makes it.

        :param servers: 1 … 7; one alone is ZooKeeper's standalone mode.
        :param tick_time: ZooKeeper's tickTime, in seconds, 0.001 … 3600. Quick by default:
            session timeouts lie between two and twenty ticks.
        :param min_session_timeout: seconds, if not two ticks.
        :param max_session_timeout: seconds, if not twenty ticks.
        :param durable: force each transaction to the disk. Off by default, which is quick
            and loses nothing when a server is killed, only when the machine loses power.
        :param config: further lines of zoo.cfg (ZooKeeper Administrator's Guide,
            "Configuration Parameters"), for every server; they win.
        :param java_options: further options of the JVM, such as ``-Dname=value``.
        :param start_timeout: seconds until all servers must serve.
        :raises InvalidArgument: a number is outside its range.
        """
        if not 1 <= servers <= _LARGEST:
            raise InvalidArgument("servers", servers, f"1 … {_LARGEST}")
        self._size = servers
        self._settings = Settings(
            tick_time=tick_time,
            min_session_timeout=min_session_timeout,
            max_session_timeout=max_session_timeout,
            durable=durable,
            config=dict(config or {}),
        )
        self._java_options = tuple(java_options)
        self._start_timeout = start_timeout
        self._directory: Path | None = None
        self._removal: weakref.finalize[[Path, int], LocalEnsemble] | None = None
        self._opened = contextlib.ExitStack()
        self.servers: tuple[LocalServer, ...] = ()

    def __repr__(self) -> str:
        return f"<LocalEnsemble {self.hosts or 'not started'}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, _NO_FAILURE):
            self.keep()
        self.stop()

    # --- looking --------------------------------------------------------------------------

    @property
    def hosts(self) -> str:
        """``host:port`` of every server, separated by commas; empty before the start."""
        return ",".join(server.address for server in self.servers)

    @property
    def directory(self) -> Path:
        """Where the servers keep their files: ``server-1/server.log`` and so on.

        :raises Misuse: it was never started.
        """
        if self._directory is None:
            raise Misuse(_NOT_STARTED)
        return self._directory

    def leader(self, *, timeout: float = 30.0) -> int:
        """Wait until a server leads the ensemble, and return its index in :attr:`servers`.

        A server that stands alone leads. A paused one is not asked, so when it was the
        leader this waits for its successor.

        :param timeout: seconds, above 0.
        :raises ServerFailed: none leads in time.
        :raises Misuse: the ensemble is not started.
        """
        if not self.servers:
            raise Misuse(_NOT_STARTED)
        deadline = time.monotonic() + timeout
        while (leader := find_leader(self.servers)) is None:
            if time.monotonic() > deadline:
                first = self.servers[0]
                problem = f"and its peers have elected no leader within {timeout:g} s"
                raise ServerFailed(first.address, problem, first.log_path)
            time.sleep(_POLL_EVERY)
        return leader

    def wait_ready(self, *, timeout: float = 60.0) -> None:
        """Wait until every server that runs, and is not paused, serves clients.

        :param timeout: seconds, above 0, for all of them together.
        :raises ServerFailed: one does not.
        """
        awake = [server for server in self.servers if server.running and not server.paused]
        _wait_ready(awake, timeout)

    # --- doing ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start all servers and wait until they serve.

        :raises ServerNotFound: this machine has no ZooKeeper, or no Java; it says what to type.
        :raises ServerFailed: a server did not start; the end of its log is in the message.
        :raises Misuse: it is started already.
        """
        if self.servers:
            raise Misuse(f"this ensemble is started already, at {self.hosts}")
        distribution = find_server()
        for choices_left in reversed(range(_PORT_CHOICES)):
            try:
                self._open(distribution)
                _wait_ready(self.servers, self._start_timeout)
            except ServerFailed as failure:
                if not (failure.port_taken and choices_left):
                    self.keep()
                    self.stop()
                    raise
                self.stop()
            except BaseException:  # Ctrl-C too must leave no server behind
                self.stop()
                raise
            else:
                return

    def stop(self) -> None:
        """Kill the servers and delete their directory, unless :meth:`keep` was called."""
        self._opened.close()
        for server in self.servers:
            server.kill()  # one that Ctrl-C found in the hands of its thread is here only now
        if self._removal is not None:
            self._removal()
        self.servers = ()

    def keep(self) -> Path:
        """Do not delete the servers' directory; print its path on standard error.

        :raises Misuse: it was never started.
        """
        directory = self.directory
        if self._removal is not None and self._removal.detach() is not None:
            sys.stderr.write(f"ZooKeeper's logs and data are kept in {directory}\n")
        return directory

    # --- within ---------------------------------------------------------------------------

    def _open(self, distribution: Distribution) -> None:
        """Make directory, ports, thread and processes; ``stop`` undoes it in reverse."""
        self._directory = directory = unmade("zkelect-zookeeper-")
        self._removal = weakref.finalize(self, _remove, directory, os.getpid())
        directory.mkdir(mode=0o700)
        sites = self._sites(self._size, self._opened)
        self.servers = tuple(
            LocalServer(
                address=site.address,
                directory=self._lay_out(directory, index, [each.ports for each in sites]),
                distribution=distribution,
                java_options=self._java_options,
                spawner=site.spawner,
            )
            for index, site in enumerate(sites)
        )
        for server in self.servers:
            self._opened.callback(server.kill)
            server.launch()

    def _sites(self, count: int, opened: contextlib.ExitStack) -> Sequence[Site]:
        """Make a place for each server; ``opened`` is closed after the last one has ended."""
        ports = [_reserve(opened) for _ in range(count)]
        # The thread that starts the servers: they die with it (launcher.launch), so it must
        # last as long as they do, and must not be a caller's.
        spawner = opened.enter_context(ThreadPoolExecutor(1, "local-zookeeper"))
        return [Site(each, spawner) for each in ports]

    def _lay_out(self, directory: Path, index: int, ensemble: Sequence[Ports]) -> Path:
        """Write the files of one server; return its directory."""
        home = directory / f"server-{index + 1}"
        data = home / "data"
        data.mkdir(parents=True)
        (data / "myid").write_text(f"{index + 1}\n", "ascii")
        (home / "zoo.cfg").write_text(self._settings.zoo_cfg(data, index, ensemble), "utf-8")
        for name, text in LOG_CONFIGURATIONS.items():
            (home / name).write_text(text, "ascii")
        return home


def _reserve(opened: contextlib.ExitStack) -> Ports:
    """Hold three free ports of the loopback interface."""
    held = client, quorum, election = Port(), Port(), Port()
    for port in held:
        opened.callback(port.release)
    return Ports(client.number, quorum.number, election.number)


def _wait_ready(servers: Sequence[LocalServer], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    for server in servers:
        server.wait_ready(timeout=max(deadline - time.monotonic(), _POLL_EVERY))


def _remove(directory: Path, owner: int) -> None:
    """Delete the directory, but not in a process forked from the one that made it."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
