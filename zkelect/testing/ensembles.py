"""What a test may ask of an ensemble, whether its servers are processes or containers.

``LocalEnsemble`` is an :class:`Ensemble`; ``NamespaceEnsemble`` and ``DockerEnsemble`` are
:class:`FaultyEnsemble`. A test that takes one of these runs on each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path
    from types import TracebackType

__all__ = ["Ensemble", "FaultyEnsemble", "Server", "find_leader"]


class Server(Protocol):
    """One ZooKeeper server of an ensemble."""

    @property
    def address(self) -> str:
        """``host:port`` for clients; the same one after a restart."""

    @property
    def running(self) -> bool:
        """Its process exists; a paused one does."""

    @property
    def paused(self) -> bool:
        """Its process exists, but is stopped by :meth:`pause`."""

    @property
    def mode(self) -> str | None:
        """``leader``, ``follower``, ``standalone``, …; None while it serves nobody."""

    def launch(self) -> None:
        """Start the process and do not wait for it. Raises Misuse: it runs already."""

    def start(self, *, timeout: float = 60.0) -> None:
        """Start the process and wait until it answers; it may not serve yet."""

    def wait_ready(self, *, timeout: float = 60.0) -> None:
        """Wait until it serves clients."""

    def stop(self) -> None:
        """End the process by SIGTERM, after ten seconds by SIGKILL."""

    def kill(self) -> None:
        """End the process at once (SIGKILL), and return when it has ended."""

    def pause(self) -> None:
        """Stop the process where it is, and return when it stands still."""

    def resume(self) -> None:
        """Let a paused process go on."""


class Ensemble(Protocol):
    """ZooKeeper servers that are started, asked who leads, and stopped."""

    @property
    def servers(self) -> Sequence[Server]:
        """The servers, by index; empty before the start."""

    @property
    def hosts(self) -> str:
        """``host:port`` of every server, separated by commas; empty before the start."""

    def leader(self, *, timeout: float = 30.0) -> int:
        """Wait until one server alone leads, and return its index."""

    def wait_ready(self, *, timeout: float = 60.0) -> None:
        """Wait until every server that runs, and is not paused, serves clients."""

    def start(self) -> None:
        """Start all servers and wait until they serve."""

    def stop(self) -> None:
        """End the servers and remove what they left, unless :meth:`keep` was called."""

    def keep(self) -> Path:
        """Keep the servers' logs when the ensemble stops; return where they will be."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class FaultyEnsemble(Ensemble, Protocol):
    """An ensemble whose network can be broken.

    Packets are dropped without a word, as by a failed switch; nobody is told, and nobody's
    connection is closed. Faults add up, outlast a restart of the server, and hold until
    :meth:`heal`. An index outside :attr:`servers` raises InvalidArgument, an ensemble that
    is not started Misuse.
    """

    def isolate(self, index: int) -> None:
        """Cut a server off from its peers and from all clients, both ways."""

    def partition(
        self, one: Collection[int], other: Collection[int], *, one_way: bool = False
    ) -> None:
        """Drop what servers of one group send to servers of the other; clients reach both.

        :param one: indices of servers. :param other: indices of servers, none of them in ``one``.
        :param one_way: drop only what ``one`` sends to ``other``; the answers too are lost
            then, but not what ``other`` sends by itself.
        """

    def slow(self, index: int, *, latency: float = 0.05, loss: float = 0.0) -> None:
        """Delay, and lose at random, all that a server sends, to peers and to clients.

        A second call for the same server replaces the first.

        :param latency: seconds added to each packet, 0 … 60.
        :param loss: share of the packets that are lost, 0 … 1.
        """

    def heal(self) -> None:
        """Undo every fault of the network; paused and killed servers stay so.

        Connections that lost packets are ended, so that their ends meet anew at once: TCP by
        itself would send again ever more rarely, the longer the cut has lasted.
        """


def find_leader(servers: Sequence[Server]) -> int | None:
    """Return the index of the server that leads, None when that is none, or not sure.

    A server that stands alone leads; a paused one is not asked. Two at once: one was cut off
    or paused, has a successor, and does not know it yet.
    """
    modes = [server.mode for server in servers]
    leaders = [index for index, mode in enumerate(modes) if mode in {"leader", "standalone"}]
    return leaders[0] if len(leaders) == 1 else None
