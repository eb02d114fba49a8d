"""The engine of a promotion on a real ZooKeeper, with servers in memory: who wins, and when not."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from election.waiting import WITHIN, until
from recipes.engine_stage import Stage
from recipes.memory_cluster import Cluster, MemoryResource, Refused

import zkelect
from zkelect.recipes.agent import Agent
from zkelect.recipes.choice import Policy
from zkelect.recipes.member import Observed
from zkelect.recipes.notes import decode
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble

QUICK = {"patience": 0.5, "cool_down": 0.5, "phase_timeout": 10.0}


@pytest.fixture
def engine(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Stage]]:
    """Set a stage: three servers, the first one the primary; options of the policy."""
    with ExitStack() as opened:

        def enter(hosts: str = zookeeper.hosts, **options: Any) -> Stage:
            priorities = options.pop("priorities", {})
            policy = Policy(**QUICK | options)
            stage = Stage(hosts, path, "a", "b", "c", policy=policy, priorities=priorities)
            return opened.enter_context(stage)

        yield enter


class Writer:
    """Writes row after row to whichever server takes them; remembers what was acknowledged."""

    def __init__(self, stage: Stage) -> None:
        self.acknowledged: list[int] = []
        self._stage = stage
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(WITHIN)

    def _run(self) -> None:
        row = 0
        while not self._stop.wait(0.001):
            for name in self._stage.cluster.writable_names():
                row += 1
                try:
                    self._stage.cluster.write(name, row)
                except Refused:
                    continue
                self.acknowledged.append(row)

    def until_more(self) -> None:
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) > before, "another row was acknowledged")


def read_page(pages: zkelect.Following) -> Page | None:
    znode = pages.znode
    return decode(Page, znode.data) if znode is not None and znode.data else None


def rows(stage: Stage, name: str) -> list[int]:
    return stage.cluster.servers[name].log


def one_server_at_a_time(stage: Stage) -> bool:
    """Whether no two intervals in which a server took writes overlap."""
    with stage.cluster.lock:
        spans = sorted(span for each in stage.cluster.servers.values() for span in each.opened)
    return all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


# --- H81: who wins, and coordinators that die ------------------------------------------------


def test_h81_the_most_caught_up_replica_wins(engine: Callable[..., Stage]) -> None:
    """Not the first in any queue, nor the one of the highest priority."""
    stage = engine(priorities={"b": 7})
    stage.cluster.write("a", 1)
    stage.cluster.lag("b")
    stage.cluster.write("a", 2)
    stage.cluster.crash("a")
    stage.until_primary("c")
    assert rows(stage, "c") == [1, 2]


def test_h81_of_equals_the_one_of_higher_priority_wins(engine: Callable[..., Stage]) -> None:
    stage = engine(priorities={"c": 7})
    stage.cluster.write("a", 1)
    stage.cluster.crash("a")
    stage.until_primary("c")


@pytest.mark.parametrize("phase", [*Phase][:5])
@pytest.mark.parametrize("change", ["switchover", "fail-over"])
def test_h81_the_coordinator_killed_at_a_boundary_is_followed_by_one_that_goes_on(
    engine: Callable[..., Stage], operator: Any, change: str, phase: Phase
) -> None:
    """The next one ends it, and no token has ordered or made two promotions."""
    stage = engine(synchronous=True)
    until(lambda: stage.status().sync is not None, "somebody was in step")
    coordinators = f"{stage.path}/coordinator"
    orders: set[tuple[str, str | None]] = set()
    killed = threading.Event()

    def kill_and_note() -> None:
        with zkelect.Znodes(stage.session).follow(f"{stage.path}/page") as pages:
            while not done.is_set():
                page = read_page(pages)
                if page is not None and page.phase is Phase.PROMOTE:
                    orders.add((page.promoted_by, page.winner))
                if page is not None and page.phase is phase and not killed.is_set():
                    killed.set()
                    operator.delete(coordinators, operator.nodes(coordinators)[0])
                pages.wait(0.05)

    done = threading.Event()
    watcher = threading.Thread(target=kill_and_note)
    with Writer(stage) as writer:
        writer.until_more()
        watcher.start()
        if change == "switchover":
            assert stage.promotion.switchover("b", timeout=WITHIN) == "b"
        else:
            stage.cluster.crash("a")
        stage.until_primary("b")
        writer.until_more()
    done.set()
    watcher.join(WITHIN)
    assert killed.is_set()
    tokens = [token for token, _ in orders]
    assert len(tokens) == len(set(tokens))
    made = [token for token, _ in stage.cluster.promoted]
    assert len(made) == len(set(made))
    assert set(writer.acknowledged) <= set(rows(stage, "b"))
    assert one_server_at_a_time(stage)


# --- H82, H85 ------------------------------------------------------------------------------------


def test_h82_the_old_primary_comes_back_with_rows_of_its_own_and_is_rewound(
    engine: Callable[..., Stage],
) -> None:
    stage = engine()
    stage.cluster.write("a", 1)
    for name in ("b", "c"):
        stage.cluster.lag(name)
    stage.cluster.write("a", 2)
    stage.cluster.crash("a")
    stage.until_primary("b")
    for name in ("b", "c"):
        stage.cluster.servers[name].link = True
    stage.cluster.write("b", 3)
    stage.cluster.restart("a")
    stage.until_follow("b", "a", "c")
    until(lambda: rows(stage, "a") == [1, 3], "a had what b has")


def test_h85_nobody_eligible_nobody_promotes_and_each_reason_is_listed(
    engine: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "zkelect.recipes")
    stage = engine(synchronous=True)
    until(lambda: stage.status().sync is not None, "somebody was in step")
    sync = stage.status().sync
    assert sync is not None
    (in_step,) = sync.names
    (other,) = {"b", "c"} - {in_step}
    before = stage.serials()
    with stage.cluster.lock:  # at the same instant, so that neither is struck off for the other
        stage.cluster.crash("a")
        stage.cluster.crash(in_step)
    until(lambda: "0 eligible, and 1 must be" in caplog.text, "the coordinator refused")
    reasons = {verdict.name: verdict.reason for verdict in stage.status().verdicts}
    assert reasons == {
        "a": "its server is stopped",
        in_step: "its server is stopped",
        other: f"not in the sync set, in which are: {in_step}",
    }
    assert (stage.serials(), stage.cluster.writable_names()) == (before, [])
    stage.cluster.restart(in_step)
    until(lambda: stage.cluster.writable_names() == [in_step], f"{in_step} was the primary")


# --- the primary's dead-man ------------------------------------------------------------------


def test_only_zookeeper_cut_from_the_primary_it_is_demoted_before_another_opens(
    engine: Callable[..., Stage],
) -> None:
    stage = engine()
    with Writer(stage) as writer:
        writer.until_more()
        stage.crew["a"].forwarder.cut()
        stage.until_primary("b")
        writer.until_more()
    (_, closed), *_ = stage.cluster.servers["a"].opened
    assert closed < stage.cluster.servers["b"].since
    stage.crew["a"].forwarder.heal()
    stage.until_follow("b", "a", "c")


def test_a_primary_whose_agent_hangs_is_demoted_all_the_same(
    engine: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the thread that holds the right: it never waits for what the agent is doing."""
    stage, hung, over = engine(), threading.Event(), threading.Event()
    resource = stage.crew["a"].resource
    look = resource.observe

    def hang() -> Observed:
        hung.set()
        over.wait(WITHIN)
        return look()

    monkeypatch.setattr(resource, "observe", hang)
    assert hung.wait(WITHIN)
    stage.crew["a"].forwarder.cut()
    stage.until_primary("b")
    (_, closed), *_ = stage.cluster.servers["a"].opened
    assert closed < stage.cluster.servers["b"].since
    over.set()


def test_a_primary_whose_agent_ends_in_good_order_is_followed_by_one_that_has_all(
    engine: Callable[..., Stage],
) -> None:
    stage = engine()
    with Writer(stage) as writer:
        writer.until_more()
        stage.crew.pop("a").leave()
        stage.until_primary("b")
    assert set(writer.acknowledged) <= set(rows(stage, "b"))


def test_a_primary_that_cannot_be_demoted_stays_the_only_one(
    engine: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = engine()

    def stuck(act: str) -> None:
        if act == "demote":
            raise RuntimeError("the server does not stop")

    monkeypatch.setattr(stage.crew["a"].resource, "before", stuck)
    with pytest.raises(zkelect.SwitchoverFailed, match="a failed to demote: RuntimeError: the ser"):
        stage.promotion.switchover("b", timeout=WITHIN)
    stage.until_primary("a")
    stage.crew["a"].stop.set()  # the right is not given up over a server that takes writes
    until(lambda: stage.status().beat("a") is None, "the agent of a had gone")
    assert (stage.cluster.writable_names(), stage.status().holder) == (["a"], "a")
    monkeypatch.undo()
    stage.until_primary("b")
    assert one_server_at_a_time(stage)


def test_zookeeper_restarted_promotes_nobody_else(
    doomed: LocalEnsemble, engine: Callable[..., Stage]
) -> None:
    stage = engine(doomed.hosts)
    server = doomed.servers[0]
    server.kill()
    server.start()
    stage.until_primary("a")
    assert {name for _, name in stage.cluster.promoted} == {"a"}


# --- what operators do -----------------------------------------------------------------------


def test_switchovers_under_a_writer_lose_nothing(
    engine: Callable[..., Stage], times: Callable[[int, int], int]
) -> None:
    stage = engine()
    with Writer(stage) as writer:
        for turn in range(times(3, 20)):
            to = "bca"[turn % 3]
            writer.until_more()
            assert stage.promotion.switchover(to, timeout=WITHIN) == to
            stage.until_primary(to)
            stage.until_follow(to, *({"a", "b", "c"} - {to}))
    kept = rows(stage, str(stage.status().primary))
    assert kept == sorted(set(kept))
    assert set(writer.acknowledged) <= set(kept)
    assert one_server_at_a_time(stage)


def test_a_switchover_to_one_that_lags_is_rolled_back(engine: Callable[..., Stage]) -> None:
    stage = engine()
    stage.cluster.lag("c")
    stage.cluster.write("a", 1)
    with pytest.raises(zkelect.SwitchoverFailed, match="rolled back: c is behind"):
        stage.promotion.switchover("c", timeout=WITHIN)
    stage.until_primary("a")
    stage.cluster.write("a", 2)


def test_an_agent_of_another_cluster_is_refused_before_it_demotes_anything(
    engine: Callable[..., Stage],
) -> None:
    stage = engine()
    strange = Cluster("d", system="other")
    agent = Agent(stage.session, stage.path, MemoryResource(strange, "d"), policy=stage.policy)
    with pytest.raises(Unfit, match="is the path of the cluster s, and d is of other"):
        agent.run(threading.Event())
    assert strange.writable_names() == ["d"]


def test_a_switchover_to_nobody_is_refused_at_once(engine: Callable[..., Stage]) -> None:
    stage = engine()
    before = stage.serials()
    with pytest.raises(zkelect.SwitchoverFailed, match="d is not there"):
        stage.promotion.switchover("d", timeout=WITHIN)
    assert (stage.serials(), stage.cluster.writable_names()) == (before, ["a"])


def test_while_paused_nobody_is_promoted(
    engine: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "zkelect.recipes")
    stage = engine()
    stage.promotion.pause("a new disk", by="ada")
    stage.cluster.crash("a")
    until(lambda: "paused by 'ada'" in caplog.text, "the coordinator heard of the pause")
    assert stage.cluster.writable_names() == []
    assert stage.status().primary == "a"
    stage.promotion.resume()
    stage.until_primary("b")
