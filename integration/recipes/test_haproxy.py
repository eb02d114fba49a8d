"""docs/promotion_clients.md, HAProxy: its configuration in front of a cluster and its agents."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from election.waiting import until
from recipes.bouncer import PAGE, block, replaced
from recipes.front_stage import FrontStage, front_staged
from recipes.front_writer import FrontWriter
from recipes.reaper import reaping
from recipes.sampler import Sampler
from servers.packages import program

from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.front_stage import ServingAgent

    from zkelect.testing import LocalEnsemble

RATE: Final = 1000.0
PLACES: Final = ("10.0.0.1:5432", "10.0.0.2:5432", "10.0.0.3:5432")


class HaProxy:
    """The page's configuration, with the ports of this test."""

    def __init__(self, folder: Path, stage: FrontStage, stack: ExitStack) -> None:
        self.writes, self.reads = (self._hold(stack) for _ in range(2))
        text = replaced(
            block("haproxy"),
            ("bind :5000", f"bind {LOOPBACK}:{self.writes}"),
            ("bind :5001", f"bind {LOOPBACK}:{self.reads}"),
        )
        for place, agent in zip(PLACES, stage.agents.values(), strict=True):
            there = f"{place} check port 8008"
            assert text.count(there) == 2, there
            text = text.replace(there, f"{LOOPBACK}:{agent.node.port} check port {agent.page}")
        file = folder / "haproxy.cfg"
        file.write_text(text, "utf-8")
        process = subprocess.Popen([program("haproxy"), "-db", "-q", "-f", str(file)])
        stack.callback(process.wait)
        stack.callback(process.kill)

    def _hold(self, stack: ExitStack) -> int:
        port = Port()
        stack.callback(port.release)
        return port.number

    def connect(self, port: int | None = None) -> psycopg.Connection[Any]:
        """Connect as clients do, to the port for writes unless another is named."""
        return psycopg.connect(
            f"host={LOOPBACK} port={port or self.writes} user=zkelect dbname=postgres",
            autocommit=True,
            connect_timeout=5,
        )

    def who(self, port: int) -> set[int | None]:
        """Return the ports of the servers that answer some clients; None: somebody got none."""
        return {self._ask(port) for _ in range(9)}

    def _ask(self, port: int) -> int | None:
        with suppress(psycopg.Error), self.connect(port) as connection:
            row = connection.execute("select inet_server_port()").fetchone()
            assert row is not None
            return int(row[0])
        return None


@pytest.fixture
def front(zookeeper: LocalEnsemble, path: str) -> Iterator[FrontStage]:
    with front_staged(zookeeper, path) as stage:
        yield stage


@pytest.fixture
def proxy(front: FrontStage, tmp_path: Path) -> Iterator[HaProxy]:
    with ExitStack() as stack:
        stack.enter_context(reaping(tmp_path))
        made = HaProxy(tmp_path, front, stack)
        until(lambda: made.who(made.writes) == {front.primary.port}, "writes go to the primary")
        yield made


def replicas(front: FrontStage) -> set[int | None]:
    return {node.port for node in front.cluster.others(front.primary.name)}


@pytest.mark.timeout(300)
def test_planned_switches_through_haproxy_lose_no_confirmed_row(
    front: FrontStage, proxy: HaProxy
) -> None:
    """1,000 rows a second; the pause and what clients are told is printed."""
    until(lambda: proxy.who(proxy.reads) == replicas(front), "reads go to the replicas")
    with Sampler(front.cluster) as sampler, FrontWriter(proxy.connect, rate=RATE) as writer:
        writer.wait_for(100, port=front.primary.port)
        front.switch_over(writer)
        lost = front.lost_rows(writer)
    print(told("haproxy, planned", writer, lost))
    assert lost == []
    front.check_one_writable(writer, sampler)
    front.wait_following()
    until(lambda: proxy.who(proxy.reads) == replicas(front), "reads go to the replicas")


@pytest.mark.timeout(300)
def test_a_fail_over_through_haproxy_goes_on_by_itself(front: FrontStage, proxy: HaProxy) -> None:
    """The host of the primary is killed; later it comes back, and gets no write."""
    with Sampler(front.cluster) as sampler, FrontWriter(proxy.connect, rate=RATE) as writer:
        writer.wait_for(100, port=front.primary.port)
        old = front.primary
        front.fail_over(writer)
        front.agents[old.name].start()
        front.wait_following()
        until(lambda: front.agents[old.name].ask("/replica") == 200, "it answers reads")
        writer.wait_for(100, port=front.primary.port)
        lost = front.lost_rows(writer)
    print(told("haproxy, host killed", writer, lost))
    front.check_one_writable(writer, sampler)


@pytest.mark.timeout(300)
def test_h81_while_one_agent_says_primary_no_other_does(front: FrontStage) -> None:
    """Asked every few milliseconds, during a planned switch and a frozen host."""
    with Asked(front) as asked:
        to = front.cluster.others(front.primary.name)[0].name
        front.promotion.switchover(to)
        until(lambda: asked.heard(to), f"{to} says that it is")
        frozen = front.agents[to]
        frozen.signal(signal.SIGSTOP)
        frozen.node.signal(signal.SIGSTOP)
        try:
            new = front.wait_steady(without=to)
            until(lambda: front.agents[new].ask("/primary") == 200, f"{new} says that it is")
        finally:
            frozen.node.signal(signal.SIGCONT)
            frozen.signal(signal.SIGCONT)
        until(lambda: front.agents[to].ask("/primary") == 503, f"{to} says that it is not")
        until(lambda: front.agents[new].ask("/primary") == 200, f"{new} says that it is")
    assert [name for name, _, _ in asked.terms()] == [front.primaries[0], to, new], asked.terms()


class Asked:
    """Asks each agent again and again whether it is the primary; keeps every yes."""

    def __init__(self, front: FrontStage) -> None:
        self._done = threading.Event()
        self._yes: list[tuple[float, float, str]] = []
        self._threads = [
            threading.Thread(target=self._work, args=(agent,), daemon=True)
            for agent in front.agents.values()
        ]

    def __enter__(self) -> Asked:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(30)

    def _work(self, agent: ServingAgent) -> None:
        while not self._done.wait(0.005):
            before = time.monotonic()
            # An answer that was made before a freeze and comes after it tells nothing of then.
            if agent.ask("/primary", timeout=2) == 200:
                self._yes.append((before, time.monotonic(), agent.node.name))

    def heard(self, name: str) -> bool:
        """Tell whether this one has ever said yes."""
        return any(who == name for _, _, who in self._yes)

    def terms(self) -> list[tuple[str, float, float]]:
        """Fold the answers into terms; those of two agents never overlap.

        A yes was true at some instant between the question and the answer.
        """
        folded: list[tuple[str, float, float]] = []
        for before, after, name in sorted(self._yes, key=lambda each: each[1]):
            if folded and folded[-1][0] == name:
                folded[-1] = (name, folded[-1][1], max(folded[-1][2], before))
            else:
                folded.append((name, after, before))
        return folded


def told(what: str, writer: FrontWriter, lost: list[int]) -> str:
    texts = {re.sub(r"\d+", "N", each.text)[:90] for each in writer.failed}
    return (
        f"{what}: pause {writer.pause():.2f} s, confirmed {len(writer.confirmed)}, "
        f"lost {len(lost)}, errors {len(writer.failed)}: {'; '.join(sorted(texts))}"
    )


def test_the_answers_of_the_page_have_the_fields_of_an_agent(front: FrontStage) -> None:
    """What curl is answered, field by field: by the primary, and by one that follows."""
    examples = [json.loads(line) for line in re.findall(r'^\{"path": .*\}$', PAGE, re.MULTILINE)]
    assert [each["primary"] for each in examples] == [True, False]
    for example in examples:
        until(partial(answered, front, shape(example)), f"an answer like {example}")


def shape(answer: dict[str, Any]) -> tuple[object, ...]:
    return (*answer, answer["primary"], answer["replica"], answer["role"], answer["token"] is None)


def answered(front: FrontStage, wanted: tuple[object, ...]) -> bool:
    answers = [agent.answer("/primary") for agent in front.agents.values()]
    return wanted in [shape(json.loads(answer[1])) for answer in answers if answer is not None]
