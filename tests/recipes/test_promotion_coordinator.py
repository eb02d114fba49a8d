"""The coordinator's term: it writes over what it read, and looks again when nobody answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import zkelect
from zkelect.recipes.choice import Policy, SyncSet
from zkelect.recipes.coordinator import Coordinator
from zkelect.recipes.member import Heartbeat, Member, Observed, Role
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.position import Position

if TYPE_CHECKING:
    from zkelect.recipes.page import Request

HERE = Position.parse("x@0:10")
READS = ("page", "sync", "beats", "holder", "paused", "request")


class Leadership:
    """A term that is over when somebody says so."""

    token = "t2"

    def __init__(self) -> None:
        self.over = False
        self.looks = 0

    def check(self) -> str:
        if self.over:
            raise zkelect.SessionClosed("here:1")
        return self.token

    def wait_lost(self, timeout: float) -> bool:
        self.looks += 1
        assert self.looks < 20, "it looks again and again, and decides nothing"
        return self.over


class Board:
    """One on which a cluster is seen that nobody has looked after; each failure comes once."""

    path = "/cluster"

    def __init__(self, leadership: Leadership, *failing: str) -> None:
        self._leadership = leadership
        self._failing = set(failing)
        self.written: list[tuple[Page, dict[str, int]]] = []

    def _answer(self, what: str) -> None:
        if what in self._failing:
            self._failing.remove(what)
            raise zkelect.ConnectFailed("here:1", 1.0, {})

    def page(self) -> tuple[Page | None, int]:
        self._answer("page")
        return None, 3

    def sync(self) -> tuple[SyncSet | None, int]:
        self._answer("sync")
        return None, 5

    def beats(self) -> tuple[Heartbeat, ...]:
        self._answer("beats")
        primary = Observed(role=Role.PRIMARY, position=HERE, system="s")
        return (Heartbeat(member=Member(name="a"), observed=primary),)

    def holder(self) -> str | None:
        self._answer("holder")
        return None

    def paused(self) -> str:
        self._answer("paused")
        return ""

    def request(self) -> Request | None:
        self._answer("request")
        return None

    def turn(self, leadership: Leadership, page: Page, **versions: int) -> None:
        self._answer("turn")
        self.written.append((page, versions))
        leadership.over = True


def lead(leadership: Leadership, *failing: str) -> Board:
    """Lead until a page is written; return the board."""
    board: Any = Board(leadership, *failing)
    term: Any = leadership
    Coordinator(board, "b", Policy()).lead(term)
    made: Board = board
    return made


def test_h81_a_page_is_written_over_what_was_read_and_with_the_token_of_the_term() -> None:
    ((page, versions),) = lead(Leadership()).written
    assert (page.phase, page.winner, page.token, page.promoted_by) == (
        Phase.PROMOTE,
        "a",
        "t2",
        "t2",
    )
    assert versions == {"version": 3, "sync_version": 5}


@pytest.mark.parametrize("what", [*READS, "turn"])
def test_h81_a_coordinator_that_zookeeper_does_not_answer_looks_again(what: str) -> None:
    """Also after a write of which it does not know whether it came through: it reads what is so."""
    leadership = Leadership()
    assert len(lead(leadership, what).written) == 1
    assert leadership.looks == 3


def test_h81_a_coordinator_whose_term_is_over_decides_nothing() -> None:
    class Over(Leadership):
        """One that is lost between two looks."""

        def wait_lost(self, timeout: float) -> bool:
            assert not self.over, "it goes on in a term that is over"
            self.over = True
            return False

    leadership: Any = Over()
    board: Any = Board(leadership)
    with pytest.raises(zkelect.SessionClosed):
        Coordinator(board, "b", Policy()).lead(leadership)
    assert board.written == []
