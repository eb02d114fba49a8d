"""An agent that ZooKeeper does not answer goes on, and takes that for nobody's failure."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

import attrs
import pytest
from recipes.memory_cluster import Cluster, MemoryResource

import zkelect
from zkelect.recipes import agent
from zkelect.recipes.choice import Policy
from zkelect.recipes.member import Done, Heartbeat, Outcome
from zkelect.recipes.notes import decode
from zkelect.recipes.page import Page, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

FREEZE = Page(
    phase=Phase.FREEZE,
    serial=7,
    token="t",
    coordinator="c",
    primary="a",
    system="s",
    members=tuple(MemoryResource(Cluster(*"abc"), name).member for name in "abc"),
)
WITHIN = 30.0


class Board:
    """One that is no ZooKeeper: a page that stays as it is, and each failure comes once."""

    path, coordinator, primary = "/cluster", "/cluster/coordinator", "/cluster/primary"

    def __init__(self, stop: threading.Event, *failing: str) -> None:
        self._stop = stop
        self._failing = set(failing)
        self._rests = 0
        self.told: list[Heartbeat] = []

    def answer(self, what: str) -> None:
        if what in self._failing:
            self._failing.remove(what)
            raise zkelect.ConnectFailed("here:1", 1.0, {})

    def prepare(self) -> None: ...

    def page(self) -> tuple[Page | None, int]:
        return FREEZE, 4

    def page_of(self, znode: object) -> Page | None:
        return FREEZE

    def pages(self) -> Self:
        return self

    def beats(self) -> tuple[Heartbeat, ...]:
        return ()

    def register(self, beat: Heartbeat) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    # --- what is followed, and what is registered ------------------------------------------------

    @property
    def znode(self) -> None:
        self.answer("read")

    def wait(self, timeout: float) -> None:
        self._rests += 1
        if self._rests == 5:
            self._stop.set()
        self.answer("rest")

    def update(self, data: bytes) -> None:
        self.answer("tell")
        self.told.append(decode(Heartbeat, data))


class Election:
    """One in which nobody is elected."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def run_forever(self, body: Callable[..., None], *, stop: threading.Event) -> None:
        stop.wait(WITHIN)


@attrs.frozen
class Session:
    """What an agent looks at of its session."""

    timeout: float = 4.0


def run(monkeypatch: pytest.MonkeyPatch, *failing: str) -> tuple[Board, MemoryResource]:
    """Let the agent of b take five turns under a page that has it freeze."""
    stop = threading.Event()
    board = Board(stop, *failing)
    monkeypatch.setattr(agent, "Board", lambda session, path: board)
    monkeypatch.setattr(zkelect, "Election", Election)
    resource = MemoryResource(Cluster(*"abc"), "b")
    monkeypatch.setattr(resource, "before", board.answer)
    session: Any = Session()
    agent.Agent(session, "/cluster", resource, policy=Policy()).run(stop)
    return board, resource


def outcomes(board: Board) -> list[Outcome | None]:
    answers: list[Done | None] = [beat.answered(FREEZE.serial) for beat in board.told]
    return [None if done is None else done.outcome for done in answers]


def test_a_duty_is_done_once_and_told_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    board, resource = run(monkeypatch)
    assert resource.acts == ["freeze"]
    assert outcomes(board) == [Outcome.DONE] * 5


@pytest.mark.parametrize(("what", "told"), [("read", 4), ("tell", 4), ("rest", 5)])
def test_an_agent_that_zookeeper_does_not_answer_tries_again(
    monkeypatch: pytest.MonkeyPatch, what: str, told: int
) -> None:
    """Its server may be the primary: it stays one as long as the lease, and nobody is needed."""
    board, resource = run(monkeypatch, what)
    assert resource.acts == ["freeze"]
    assert outcomes(board) == [Outcome.DONE] * told


def test_a_duty_in_which_zookeeper_does_not_answer_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is done again; a coordinator would take a failure for the server's."""
    board, resource = run(monkeypatch, "freeze")
    assert resource.acts == ["freeze"]
    assert outcomes(board) == [Outcome.DONE] * 4
