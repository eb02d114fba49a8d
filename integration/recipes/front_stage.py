"""A stage for what stands in front of a cluster: agents of the command line, each with its page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from election.waiting import LONG, until
from recipes.cluster import Cluster
from recipes.postgres_node import PostgresNode
from recipes.sampler import Sampler, terms

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.operating import Promotion
from zkelect.recipes.page import Phase
from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.front_writer import FrontWriter

    from zkelect.testing import LocalEnsemble

__all__ = ["FrontStage", "ServingAgent", "front_staged"]

_OPTIONS: Final = ("--session-timeout", "2", "--patience", "0.5", "--cool-down", "0.1", "-v")


class ServingAgent:
    """A ``zkelect promote postgres --serve`` as a process."""

    def __init__(self, node: PostgresNode, zookeeper: str, path: str, page: int) -> None:
        self.node = node
        self.page = page
        place = node.place
        self._command = [
            *(sys.executable, "-m", "zkelect.cli", "promote", "postgres", path, *_OPTIONS),
            *("--hosts", zookeeper, "--name", node.name, "--address", node.address),
            *("--data", str(place.data_directory), "--local", place.local),
            *("--credentials", place.credentials, "--serve", f"{LOOPBACK}:{page}"),
        ]
        self.log = node.folder.parent / f"{node.name}.agent.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd="/", start_new_session=True
            )

    def ask(self, path: str, timeout: float = 1.0) -> int | None:
        """Return the status of the answer, None without one."""
        found = self.answer(path, timeout)
        return None if found is None else found[0]

    def answer(self, path: str, timeout: float = 1.0) -> tuple[int, str] | None:
        """Return status and body of the answer, None without one."""
        connection = HTTPConnection(LOOPBACK, self.page, timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return None
        finally:
            connection.close()

    @property
    def helpers(self) -> list[int]:
        """The processes that stand beside it: the dead-man."""
        assert self.process is not None
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(pid) for each in threads for pid in (each / "children").read_text().split()]

    def signal(self, which: signal.Signals) -> None:
        """Send it to the agent and to what stands beside it."""
        assert self.process is not None
        for pid in (*self.helpers, self.process.pid):
            os.kill(pid, which)

    def kill(self) -> None:
        """End it at once."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()


class FrontStage:
    """What a test of a proxy has at hand."""

    def __init__(
        self, cluster: Cluster[PostgresNode], zookeeper: LocalEnsemble, path: str, opened: ExitStack
    ) -> None:
        self.cluster = cluster
        self.path = path
        self.zookeeper = zookeeper
        session = opened.enter_context(zkelect.connect(zookeeper.hosts, session_timeout=2.0))
        self.board = Board(session, path)
        self.promotion = Promotion(session, path)
        self.agents = {name: self._agent(node, opened) for name, node in cluster.nodes.items()}
        self.primaries = [self.wait_steady()]
        self.wait_following()

    def _agent(self, node: PostgresNode, opened: ExitStack) -> ServingAgent:
        port = Port()
        opened.callback(port.release)
        agent = ServingAgent(node, self.zookeeper.hosts, self.path, port.number)
        opened.callback(agent.kill)
        agent.start()
        return agent

    # --- looking --------------------------------------------------------------------------------

    @property
    def primary(self) -> PostgresNode:
        return self.cluster[self.primaries[-1]]

    def wait_steady(self, *, without: str = "") -> str:
        """Wait until there is a primary, other than the one named; return its name."""
        found: list[str] = []

        def steady() -> bool:
            page, _ = self.board.page()
            if page is not None and page.phase is Phase.STEADY and page.primary != without:
                found.append(str(page.primary))
            return bool(found)

        until(steady, f"a primary other than {without!r}", within=LONG)
        return found[0]

    def wait_following(self, *, without: int = 0) -> None:
        """Wait until all servers but so many follow the primary."""
        wanted = len(self.cluster.nodes) - 1 - without

        def follow() -> bool:
            with suppress(psycopg.Error):
                return self.primary.count_followers() == wanted
            return False

        until(follow, "all follow the primary", within=LONG)

    # --- doing ------------------------------------------------------------------------------------

    def switch_over(self, writer: FrontWriter) -> None:
        """Have a planned switch done, and wait until its primary confirms rows."""
        to = self.cluster.others(self.primary.name)[0].name
        assert self.promotion.switchover(to) == to
        self.primaries.append(to)
        writer.wait_for(100, port=self.primary.port)

    def fail_over(self, writer: FrontWriter) -> None:
        """Kill the primary's host, and wait until its successor confirms rows."""
        old = self.primary
        self.agents[old.name].kill()
        old.kill()
        self.await_another(writer)

    def await_another(self, writer: FrontWriter) -> None:
        self.primaries.append(self.wait_steady(without=self.primary.name))
        writer.wait_for(100, port=self.primary.port)

    # --- judging ----------------------------------------------------------------------------------

    def lost_rows(self, writer: FrontWriter) -> list[int]:
        """Return the confirmed rows that the primary does not have."""
        writer.stop()
        there = self.primary.written()
        return [row.number for row in writer.confirmed if row.number not in there]

    def check_one_writable(self, writer: FrontWriter, sampler: Sampler) -> None:
        """At no instant did two servers take writes, by their own clocks."""
        said = [(each.at, each.server) for each in sampler.samples if each.writable]
        found = terms(said + self._writes(writer))
        assert [name for name, _, _ in found] == self.primaries, found

    def check_one_written(self, writer: FrontWriter) -> None:
        """No client was led to a primary that was one no more."""
        found = terms(self._writes(writer))
        assert [name for name, _, _ in found] == self.primaries, found

    def _writes(self, writer: FrontWriter) -> list[tuple[float, str]]:
        names = {node.port: name for name, node in self.cluster.nodes.items()}
        return [(row.at, names[row.port]) for row in writer.confirmed]

    def tell(self) -> None:
        """Print what the agents have logged last."""
        for name, agent in self.agents.items():
            print(f"--- {name}\n{agent.log.read_text('utf-8', 'replace')[-4000:]}")


@contextmanager
def front_staged(zookeeper: LocalEnsemble, path: str) -> Iterator[FrontStage]:
    """Set the stage: three servers, an agent of each, and all follow."""
    with Cluster(PostgresNode) as cluster, ExitStack() as opened:
        stage = FrontStage(cluster, zookeeper, path, opened)
        try:
            yield stage
        finally:
            stage.tell()  # pytest shows it when the test fails
