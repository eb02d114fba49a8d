"""Real ZooKeeper servers in Docker containers, with a network between them that can be broken."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from zkelect.errors import InvalidArgument, Misuse
from zkelect.testing.configuration import Settings
from zkelect.testing.directories import unmade
from zkelect.testing.docker_configuration import Plan
from zkelect.testing.docker_errors import EngineNotFound, Removed
from zkelect.testing.ensembles import find_leader
from zkelect.testing.server import ServerFailed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import TracebackType

    from zkelect.testing.docker_containers import Containers
    from zkelect.testing.docker_network import DockerNetwork
    from zkelect.testing.docker_server import DockerServer

__all__ = ["DockerEnsemble"]

_POLL_EVERY: Final = 0.05
_LONGEST_LATENCY: Final = 60.0
_NOT_STARTED: Final = "this ensemble is not started: start() it, or use it in a with-block"
_SDK: Final = frozenset({"docker", "requests"})
_NO_SDK: Final = "Docker's SDK for Python is missing: pip install 'zkelect[docker]'"
# Ends of a block that are no failure of what ran inside it.
_NO_FAILURE: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


class DockerEnsemble:
    """Real ZooKeeper servers in Docker containers; needs the extra ``zkelect[docker]``.

    ::

        with DockerEnsemble(servers=3) as zookeeper:
            session = zkelect.connect(zookeeper.hosts)
            zookeeper.isolate(zookeeper.leader())
            ...
            zookeeper.heal()

    The engine is the one that ``DOCKER_HOST`` names, or this machine's. Each ensemble has a
    network of its own, and publishes the clients' ports on loopback where the engine finds
    free ones; an engine of another machine publishes them on all its interfaces. So any
    number of ensembles run side by side.

    When the block ends the containers, their data and the network are removed; when it ends
    with an error, or a server failed to start, the servers' logs are kept and their place is
    printed on standard error. Only when this process is killed do containers stay; all have
    the label ``zkelect.ensemble``, and docs/testing_ensembles.md says how to remove them.

    For each server two containers run, and a third one after the first fault: one that does
    nothing but own the network, as in a pod of Kubernetes, so that address, port and faults
    outlast the server; the server's; and one that breaks the network.
    """

    def __init__(
        self,
        servers: int = 1,
        *,
        image: str = "zookeeper:3.8",
        tools_image: str | None = None,
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
        :param image: the official image of ZooKeeper 3.5 or newer, or one that obeys the same
            environment variables; pulled when the engine does not have it.
        :param tools_image: an image with sh, sleep, iptables, tc and ss, to break the network
            with. None: ``image`` if it has them; otherwise they are installed on top of it,
            once, by the engine, which needs a way to Debian's, Ubuntu's or Alpine's packages.
        :param tick_time: ZooKeeper's tickTime, in seconds, 0.001 … 3600. Quick by default:
            session timeouts lie between two and twenty ticks.
        :param min_session_timeout: seconds, if not two ticks.
        :param max_session_timeout: seconds, if not twenty ticks.
        :param durable: force each transaction to the disk. Off by default, which is quick
            and loses nothing when a server is killed, only when the machine loses power.
        :param config: further lines of zoo.cfg (ZooKeeper Administrator's Guide,
            "Configuration Parameters"), for every server, without blanks; they win.
        :param java_options: further options of the JVM, such as ``-Dname=value``, without
            blanks.
        :param start_timeout: seconds until all servers must serve, after the image is there.
        :raises InvalidArgument: a number is outside its range, or a text has blanks.
        """
        self._plan = Plan(
            size=servers,
            image=image,
            tools_image=image if tools_image is None else tools_image,
            settings=Settings(
                tick_time=tick_time,
                min_session_timeout=min_session_timeout,
                max_session_timeout=max_session_timeout,
                durable=durable,
                config=dict(config or {}),
            ),
            java_options=tuple(java_options),
        )
        self._start_timeout = start_timeout
        self._directory: Path | None = None
        self._removal: weakref.finalize[[Path, int], DockerEnsemble] | None = None
        self._opened = contextlib.ExitStack()
        self._network: DockerNetwork | None = None
        self.servers: Sequence[DockerServer] = ()

    def __repr__(self) -> str:
        return f"<DockerEnsemble {self.hosts or 'not started'}>"

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

    def leader(self, *, timeout: float = 30.0) -> int:
        """Wait until one server alone leads, and return its index in :attr:`servers`.

        A server that is paused, or cut off from this program, is not counted: so when it was
        the leader this waits for its successor.

        :param timeout: seconds, above 0.
        :raises ServerFailed: none leads in time.
        :raises Misuse: the ensemble is not started.
        """
        if not self.servers:
            raise Misuse(_NOT_STARTED)
        deadline = time.monotonic() + timeout
        while (leader := find_leader(self.servers)) is None:
            if time.monotonic() > deadline:
                self.servers[0].fail(f"and its peers have elected no leader within {timeout:g} s")
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

        :raises EngineNotFound: the SDK is not installed, or no engine answers.
        :raises ImageNotFound: the image is not there and could not be pulled.
        :raises EngineFailed: the engine refused something; what it said is in the message.
        :raises ServerFailed: a server did not start; the end of its log is in the message.
        :raises Misuse: it is started already.
        """
        if self.servers:
            raise Misuse(f"this ensemble is started already, at {self.hosts}")
        try:
            self._open()
            _wait_ready(self.servers, self._start_timeout)
        except ServerFailed:
            self.keep()
            self.stop()
            raise
        except BaseException:  # Ctrl-C too must leave no container behind
            self.stop()
            raise

    def stop(self) -> None:
        """Remove containers, data and network, and the logs unless :meth:`keep` was called."""
        try:
            self._opened.close()
        finally:
            self.servers, self._network = (), None

    def keep(self) -> Path:
        """Write the servers' logs when they stop; print where on standard error, and return it.

        :raises Misuse: it was never started.
        """
        if self._directory is None or self._removal is None:
            raise Misuse(_NOT_STARTED)
        if self._removal.detach() is not None:
            sys.stderr.write(f"ZooKeeper's logs are kept in {self._directory}\n")
        return self._directory

    # --- breaking -------------------------------------------------------------------------

    def isolate(self, index: int) -> None:
        """Cut a server off from its peers and from all clients, both ways.

        :raises InvalidArgument: there is no such server. :raises Misuse: not started.
        :raises NetworkUnavailable: the network cannot be broken here; it says what is missing.
        """
        self._started().isolate(self._checked("index", index))

    def partition(
        self, one: Collection[int], other: Collection[int], *, one_way: bool = False
    ) -> None:
        """Drop what servers of one group send to servers of the other; clients reach both.

        :param one: indices of servers. :param other: indices of servers, none of them in ``one``.
        :param one_way: drop only what ``one`` sends to ``other``; so no answer gets there
            either, but what ``other`` sends does arrive.
        :raises InvalidArgument: no such server, or one in both. :raises Misuse: not started.
        :raises NetworkUnavailable: the network cannot be broken here; it says what is missing.
        """
        network = self._started()
        if both := set(one) & set(other):
            raise InvalidArgument("other", other, f"without {sorted(both)}, which ``one`` has")
        speakers = [self._checked("one", index) for index in one]
        listeners = [self._checked("other", index) for index in other]
        for listener in listeners:
            network.deafen(listener, speakers)
        for speaker in () if one_way else speakers:
            network.deafen(speaker, listeners)

    def slow(self, index: int, *, latency: float = 0.05, loss: float = 0.0) -> None:
        """Delay, and lose at random, all that a server sends, to peers and to clients.

        A second call for the same server replaces the first.

        :param latency: seconds added to each packet, 0 … 60.
        :param loss: share of the packets that are lost, 0 … 1.
        :raises InvalidArgument: no such server, or a number outside its range.
        :raises NetworkUnavailable: the network cannot be broken here, or the engine's kernel
            cannot delay (netem), and this program may not do it in its place: that takes root
            on the engine's machine.
        :raises Misuse: not started.
        """
        network = self._started()
        if not 0 <= latency <= _LONGEST_LATENCY:
            raise InvalidArgument("latency", latency, f"seconds, 0 … {_LONGEST_LATENCY:g}")
        if not 0 <= loss <= 1:
            raise InvalidArgument("loss", loss, "a share of the packets, 0 … 1")
        network.slow(self._checked("index", index), latency, loss)

    def heal(self, *, reset: bool = True) -> None:
        """Undo every fault of the network; paused and killed servers stay so.

        :param reset: end the connections between those that were cut off from each other.
            TCP sends lost packets again, but waits twice as long each time: after a cut of
            ten seconds another ten may pass. False: let them wait, and arrive late.
        :raises Misuse: not started.
        """
        self._started().heal(end_connections=reset)

    # --- within ---------------------------------------------------------------------------

    def _open(self) -> None:
        """Make directory and containers, and start the servers; ``stop`` undoes it."""
        open_containers = _import_containers()
        self._directory = directory = unmade("zkelect-docker-")
        self._removal = removal = weakref.finalize(self, _remove, directory, os.getpid())
        directory.mkdir(mode=0o700)
        self._opened.callback(removal)
        opened = open_containers(self._plan, directory, self._opened)
        self._network, self.servers = opened.network, opened.servers
        self._opened.callback(self._save_logs)
        for server in self.servers:
            server.launch()

    def _save_logs(self) -> None:
        if self._removal is not None and not self._removal.alive:
            for server in self.servers:
                with contextlib.suppress(Removed):
                    server.save_log()

    def _started(self) -> DockerNetwork:
        if self._network is None:
            raise Misuse(_NOT_STARTED)
        return self._network

    def _checked(self, argument: str, index: int) -> int:
        if not 0 <= index < len(self.servers):
            last = len(self.servers) - 1
            raise InvalidArgument(argument, index, f"an index of a server, 0 … {last}")
        return index


def _import_containers() -> type[Containers]:
    try:
        from zkelect.testing.docker_containers import (  # noqa: PLC0415 - may fail, by design
            Containers,
        )
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _SDK:
            raise
        raise EngineNotFound(_NO_SDK) from missing
    return Containers


def _wait_ready(servers: Sequence[DockerServer], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    for server in servers:
        server.wait_ready(timeout=max(deadline - time.monotonic(), _POLL_EVERY))


def _remove(directory: Path, owner: int) -> None:
    """Delete the directory, but not in a process forked from the one that made it."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
