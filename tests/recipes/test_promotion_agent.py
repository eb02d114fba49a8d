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

    def __init__(self, stop: threading.Event, page: Page, *failing: str) -> None:
        self._stop = stop
        self._page = page
        self._failing = set(failing)
        self.turns = 0
        self.told: list[Heartbeat] = []

    def answer(self, what: str) -> None:
        if what in self._failing:
            self._failing.remove(what)
            raise zkelect.ConnectFailed("here:1", 1.0, {})

    def prepare(self) -> None: ...

    def page(self) -> tuple[Page | None, int]:
        return self._page, 4

    def page_of(self, znode: object) -> Page | None:
        return self._page

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
        self.turns += 1
        if self.turns == 5:
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


class Office:
    """The right to be writable, which b has."""

    leadership, token, busy = "a leadership", "p1", True

    def __init__(self, *_: object, **__: object) -> None: ...

    def closing(self) -> None: ...

    def leave(self) -> None: ...


class Synchrony:
    """Whom the primary waits for is kept on the board."""

    def __init__(self, board: Board, *_: object) -> None:
        self._board = board

    def keep(self, *_: object) -> None:
        self._board.answer("keep")


def run(
    monkeypatch: pytest.MonkeyPatch, *failing: str, page: Page = FREEZE
) -> tuple[Board, MemoryResource]:
    """Let the agent of b take five turns under a page; without another one it is to freeze."""
    stop = threading.Event()
    board = Board(stop, page, *failing)
    monkeypatch.setattr(agent, "Board", lambda session, path: board)
    monkeypatch.setattr(zkelect, "Election", Election)
    resource = MemoryResource(Cluster(str(page.primary), *"bc"), "b")
    monkeypatch.setattr(resource, "before", board.answer)
    session: Any = Session()
    agent.Agent(session, "/cluster", resource, policy=Policy()).run(stop)
    return board, resource


def outcomes(board: Board) -> set[Outcome | None]:
    """Return what was told of the duty, once it was told."""
    answers: list[Done | None] = [beat.answered(FREEZE.serial) for beat in board.told]
    return {None if done is None else done.outcome for done in answers}


def test_a_duty_is_done_once_and_told_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    board, resource = run(monkeypatch)
    assert resource.acts == ["freeze"]
    assert outcomes(board) == {Outcome.DONE}
    assert len(board.told) >= board.turns == 5


@pytest.mark.parametrize("what", ["read", "tell", "rest"])
def test_an_agent_that_zookeeper_does_not_answer_tries_again(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its server may be the primary: it stays one as long as the lease, and nobody is needed."""
    board, resource = run(monkeypatch, what)
    assert resource.acts == ["freeze"]
    assert outcomes(board) == {Outcome.DONE}
    assert board.turns == 5


def test_a_duty_in_which_zookeeper_does_not_answer_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is done again; a coordinator would take a failure for the server's."""
    board, resource = run(monkeypatch, "freeze")
    assert resource.acts == ["freeze"]
    assert outcomes(board) == {Outcome.DONE}
    assert board.turns == 5


def test_a_primary_that_cannot_record_who_is_in_step_blames_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ZooKeeper did not answer: nothing of the server's is in the way, and it is done again."""
    monkeypatch.setattr(agent, "Office", Office)
    monkeypatch.setattr(agent, "Synchrony", Synchrony)
    serving = attrs.evolve(FREEZE, phase=Phase.STEADY, primary="b", primary_token="p1")
    board, resource = run(monkeypatch, "keep", page=serving)
    assert {beat.trouble for beat in board.told} == {""}
    assert board.turns == 5
    assert resource.acts == ["demote"]  # by the agent as it ends
