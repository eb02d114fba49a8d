"""The agents of a cluster, each a process behind a proxy of its own, and what ZooKeeper says."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from election.waiting import LONG, until

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.choice import Policy
from zkelect.recipes.operating import Promotion
from zkelect.recipes.page import Page, Phase
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    from recipes.cluster import Cluster
    from recipes.node import Node

    from zkelect.testing import LocalEnsemble

__all__ = ["Agent", "Crew"]

_INTEGRATION: Final = Path(__file__).parents[1]
_SESSION: Final[dict[str, Any]] = {"session_timeout": 2.0, "tick_time": 0.2}
_POLICY: Final[dict[str, Any]] = {"patience": 0.5, "cool_down": 0.1, "phase_timeout": 10.0}


class Agent:
    """One agent: started, frozen, killed, ended."""

    def __init__(self, task: dict[str, Any], log: Path) -> None:
        self._task = task
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "recipes.agent_process"],
                cwd=_INTEGRATION,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        pickle.dump(self._task, self.process.stdin)
        self.process.stdin.flush()

    def keep_running(self) -> None:
        """Start it again if it has ended by itself, as its init system does."""
        if self.process is not None and self.process.poll() is not None:
            self.end()
            self.start()

    def freeze(self) -> None:
        """Stop it where it is, until it is resumed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def wait_ended(self) -> int:
        """Wait until it ends by itself; return its exit status."""
        assert self.process is not None
        return self.process.wait(30)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """End it; return its exit status."""
        process, self.process = self.process, None
        if process is None:
            return None
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)
        try:
            status = process.wait(30)
        finally:
            process.kill()
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
        return status


class Crew:
    """An agent for each server of the cluster, running, in a block.

    :param policy: what is not as tests have it. :param members: options of each member.
    :param session: options of their sessions. :param place: options of the place of each.
    """

    def __init__(
        self,
        cluster: Cluster[Any],
        zookeeper: LocalEnsemble,
        *,
        path: str = "/cluster",
        policy: dict[str, Any] | None = None,
        members: dict[str, dict[str, Any]] | None = None,
        session: dict[str, Any] | None = None,
        place: dict[str, Any] | None = None,
    ) -> None:
        self.cluster = cluster
        self._zookeeper = zookeeper
        self._path = path
        self._policy = {**_POLICY, **(policy or {})}
        self._members = members or {}
        self._session = {**_SESSION, **(session or {})}
        self._place = place or {}
        self.agents: dict[str, Agent] = {}
        self.proxies: dict[str, FaultProxy] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            session = opened.enter_context(zkelect.connect(self._zookeeper.hosts, **self._session))
            self.session = session
            self.board = Board(session, self._path)
            self.promotion = Promotion(session, self._path)
            for name, node in self.cluster.nodes.items():
                proxy = opened.enter_context(FaultProxy(self._zookeeper.hosts))
                self.proxies[name] = proxy
                agent = Agent(self._task(node, proxy), self.cluster.folder / f"{name}.agent.log")
                self.agents[name] = agent
                opened.callback(agent.kill)
                agent.start()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.tell()  # pytest shows it when the test fails
        self._opened.close()

    # --- looking --------------------------------------------------------------------------------

    @property
    def page(self) -> Page | None:
        """What was decided last."""
        return self.board.page()[0]

    def logged(self, text: str) -> bool:
        """Whether an agent has logged that."""
        return any(
            text in agent.log.read_text("utf-8", "replace") for agent in self.agents.values()
        )

    def primary(self) -> str | None:
        """Return who is primary, when all is steady."""
        page = self.page
        return page.primary if page is not None and page.phase is Phase.STEADY else None

    def wait_steady(self, *, without: str | None = None) -> str:
        """Wait until there is a primary, other than the one named; return its name."""
        found: list[str] = []

        def steady() -> bool:
            name = self.primary()
            found[:] = [name] if name not in (None, without) else []
            return bool(found)

        until(steady, f"a primary other than {without}", within=LONG)
        return found[0]

    def wait_following(self) -> None:
        """Wait until all servers follow the primary, whoever that is by then."""
        until(self._all_follow, "all follow the primary", within=LONG)

    def count_following(self) -> int:
        """Return how many servers follow the primary; none while there is no primary."""
        primary = self.primary()
        if primary is None:
            return 0
        node: Node = self.cluster[primary]
        with suppress(*node.errors):  # it is just being demoted
            return node.count_followers()
        return 0

    def _all_follow(self) -> bool:
        return self.count_following() == len(self.cluster.nodes) - 1

    def tell(self) -> None:
        """Print what the agents have logged last."""
        for name, agent in self.agents.items():
            text = agent.log.read_text("utf-8", "replace")
            print(f"--- {name}\n{text[-6000:]}")
        print(self.page)

    # --- doing ------------------------------------------------------------------------------------

    def kill_host(self, name: str) -> None:
        """Let server and agent end at once, as when their host loses power."""
        self.agents[name].kill()
        self.cluster[name].kill()

    def _task(self, node: Node, proxy: FaultProxy) -> dict[str, Any]:
        return {
            "hosts": proxy.hosts,
            "path": self._path,
            "session": self._session,
            "policy": Policy(**self._policy),
            "agent": {"interval": 0.2},
            "resource": node.resource,
            "member": node.member(**self._members.get(node.name, {})),
            "place": node.placed(**self._place),
            "fence": node.fence(),
        }
