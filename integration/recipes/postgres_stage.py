"""A stage for promotions: a cluster with its agents, a writer, a sampler, and what they prove."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from election.waiting import until
from recipes.cluster import Cluster, Node
from recipes.crew import Crew
from recipes.sampler import Sampler, terms
from recipes.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from zkelect.testing import LocalEnsemble

__all__ = ["Stage", "staged"]


class Stage:
    """What a test of a promotion has at hand."""

    def __init__(self, cluster: Cluster, crew: Crew, sampler: Sampler, writer: Writer) -> None:
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
        until(lambda: self._reign != before and self.crew.primary(), "a new reign")
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
        self.crew.wait_following()

    def hold_back(self, name: str) -> None:
        """Let a standby receive nothing more, behind the back of its agent, which hangs."""
        self.crew.agents[name].freeze()
        node = self.cluster[name]
        node.ask("alter system set primary_conninfo = ''")
        node.ask("select pg_reload_conf()")
        receiving = "select count(*) from pg_stat_activity where backend_type = 'walreceiver'"
        until(lambda: node.ask(receiving) == 0, f"{name} receives nothing")

    @property
    def _reign(self) -> str:
        page = self.crew.page
        return "" if page is None else page.reign

    # --- judging ----------------------------------------------------------------------------------

    def lost_rows(self) -> list[int]:
        """Return the confirmed rows that the primary does not have."""
        confirmed = list(self.writer.confirmed)  # it grows
        with self.cluster[self.primary].connect() as connection:
            there = {number for (number,) in connection.execute("select number from written")}
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
        query = "select count(*) || ' ' || coalesce(sum(number), 0) from written"
        wanted = self.cluster[self.primary].ask(query)
        nodes = self.cluster.others(self.primary)
        for node in (each for each in nodes if each.name not in without):
            until(partial(_has, node, query, wanted), f"{node.name} has {wanted}")


def _has(node: Node, query: str, wanted: object) -> bool:
    return bool(node.ask(query) == wanted)


@contextmanager
def staged(
    zookeeper: LocalEnsemble, path: str, *, rate: float | None = None, **options: Any
) -> Iterator[Stage]:
    """Set the stage: everybody follows, and rows are written.

    :param rate: of the writer. :param options: of the crew.
    """
    with Cluster() as cluster:
        cluster["alpha"].ask("create table written (number bigint primary key)")
        with Crew(cluster, zookeeper, path=path, **options) as crew:
            crew.wait_following()
            with Sampler(cluster) as sampler, Writer(cluster, rate=rate) as writer:
                stage = Stage(cluster, crew, sampler, writer)
                writer.wait_for(20)
                yield stage
