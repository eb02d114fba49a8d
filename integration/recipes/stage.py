"""A stage for promotions: a cluster with its agents, a writer, a sampler, and what they prove."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from election.waiting import LONG, until
from recipes.cluster import Cluster, NodeT
from recipes.crew import Crew
from recipes.sampler import Sampler, terms
from recipes.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from recipes.node import Node

    from zkelect.testing import LocalEnsemble

__all__ = ["Stage", "staged"]


class Stage(Generic[NodeT]):
    """What a test of a promotion has at hand."""

    def __init__(
        self, cluster: Cluster[NodeT], crew: Crew, sampler: Sampler, writer: Writer
    ) -> None:
        self.cluster = cluster
        self.crew = crew
        self.sampler = sampler
        self.writer = writer
        self.primaries = [crew.wait_steady()]
        """Who has been primary, in order, as the test knows."""

    @property
    def primary(self) -> str:
        return self.primaries[-1]

    # --- doing ------------------------------------------------------------------------------------

    def fail_over(self) -> str:
        """Kill the primary's host, and wait for another primary that takes writes."""
        self.crew.kill_host(self.primary)
        return self.await_another()

    def await_another(self) -> str:
        """Wait for another primary that takes writes."""
        self.primaries.append(self.crew.wait_steady(without=self.primary))
        self.writer.wait_for(20, port=self.cluster[self.primary].port)
        return self.primary

    def await_reign(self) -> str:
        """Wait for a new reign, of the same server or another, that takes writes."""
        before = self._reign
        until(lambda: self._reign != before and self.crew.primary(), "a new reign", within=LONG)
        if (primary := self.crew.wait_steady()) != self.primary:
            self.primaries.append(primary)
        self.writer.wait_for(20, port=self.cluster[primary].port)
        return primary

    def switch_over(self, to: str) -> None:
        """Have a planned switch done."""
        assert self.crew.promotion.switchover(to) == to
        self.primaries.append(to)
        self.writer.wait_for(20, port=self.cluster[to].port)

    def bring_back(self, name: str) -> None:
        """Start the agent of a host that was killed, and wait until all follow the primary."""
        self.crew.agents[name].start()
        self.await_joined()

    def hold_back(self, name: str) -> None:
        """Let a standby receive nothing more, behind the back of its agent, which hangs."""
        self.crew.agents[name].freeze()
        self.cluster[name].cut_off()

    def await_ahead(self, name: str, *, of: str) -> None:
        """Wait until one standby has rows that another one has not.

        Redis sends nothing to one that is online before that has told its offset, once a second.
        """
        one, other = self.cluster[name], self.cluster[of]
        until(lambda: one.written() > other.written(), f"{name} is ahead of {of}", within=LONG)

    def await_joined(self) -> None:
        """Wait until all follow the primary; those that are refused are rebuilt before, by hand."""
        until(self.is_joined, "all follow, or are refused", within=LONG)
        for name in self.refused():
            assert not self.cluster.kind.heals, f"{name} is refused"
            self.crew.agents[name].end()
            self.cluster[name].rebuild(self.cluster[self.primary])
            self.crew.agents[name].start()
        self.crew.wait_following()

    # --- looking ----------------------------------------------------------------------------------

    def refused(self) -> set[str]:
        """Return whose servers need a rebuild, as their agents say."""
        beats = self.crew.promotion.status().beats
        return {beat.name for beat in beats if beat.observed.rebuild}

    def is_joined(self) -> bool:
        """Tell whether each server follows the primary, or is refused."""
        joined = self.crew.count_following() + len(self.refused())
        return self.crew.primary() is not None and joined == len(self.cluster.nodes) - 1

    def writable(self) -> list[str]:
        """Ask all servers; return who takes writes."""
        return [name for name, node in self.cluster.nodes.items() if _takes_writes(node)]

    def await_in_step(self) -> set[str]:
        """Wait until the primary has recorded who has everything that it confirms."""
        found: set[str] = set()

        def recorded() -> bool:
            page, (sync, _) = self.crew.page, self.crew.board.sync()
            if page is not None and sync is not None and sync.reign == page.reign:
                found.update(sync.names)
            return bool(found)

        until(recorded, f"{self.primary} has recorded a sync set", within=LONG)
        return found

    @property
    def _reign(self) -> str:
        page = self.crew.page
        return "" if page is None else page.reign

    # --- judging ----------------------------------------------------------------------------------

    def lost_rows(self) -> list[int]:
        """Return the confirmed rows that the primary does not have."""
        confirmed = list(self.writer.confirmed)  # it grows
        there = self.cluster[self.primary].written()
        return [row.number for row in confirmed if row.number not in there]

    def check_one_writable(self) -> None:
        """At no instant did two servers take writes, by their own clocks.

        Both by what they said when they were asked and by what they confirmed: as many terms as
        there were primaries, in that order. Two at a time would take turns.
        """
        names = {node.port: name for name, node in self.cluster.nodes.items()}
        said = [(each.at, each.server) for each in self.sampler.samples if each.writable]
        wrote = [(row.at, names[row.port]) for row in self.writer.confirmed]
        for instants in (said, said + wrote):
            found = [name for name, _, _ in terms(instants)]
            assert found == self.primaries, terms(instants)

    def check_all_equal(self, *, without: Collection[str] = ()) -> None:
        """Every server has the same rows, once nobody writes and all is replayed.

        :param without: those that were refused.
        """
        self.writer.stop()
        wanted = self.cluster[self.primary].written()
        nodes = self.cluster.others(self.primary)
        for node in (each for each in nodes if each.name not in without):
            until(partial(_has, node, wanted), f"{node.name} has the same", within=LONG)


def _takes_writes(node: Node) -> bool:
    with suppress(*node.errors), node.client() as client:
        return client.probe()[1]
    return False


def _has(node: Node, wanted: set[int]) -> bool:
    return node.written() == wanted


@contextmanager
def staged(
    kind: type[NodeT],
    zookeeper: LocalEnsemble,
    path: str,
    *,
    rate: float | None = None,
    settings: dict[str, str] | None = None,
    **options: Any,
) -> Iterator[Stage[NodeT]]:
    """Set the stage: everybody follows, and numbers are written.

    :param kind: of the servers. :param rate: of the writer. :param settings: of all servers.
    :param options: of the crew.
    """
    with (
        Cluster(kind, **(settings or {})) as cluster,
        Crew(cluster, zookeeper, path=path, **options) as crew,
    ):
        crew.wait_following()  # some kinds do before any agent is there
        until(
            lambda: len(crew.board.beats()) == len(cluster.nodes),
            "all agents are there",
            within=LONG,
        )
        with Sampler(cluster) as sampler, Writer(cluster, rate=rate) as writer:
            stage = Stage(cluster, crew, sampler, writer)
            writer.wait_for(20)
            until(
                lambda: any(each.writable for each in sampler.samples),
                "a sample of it",
                within=LONG,
            )
            yield stage
