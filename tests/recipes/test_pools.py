"""Before a primary is closed in good order its pools are waited for, and not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.pools import Pool, await_pools

if TYPE_CHECKING:
    from zkelect.recipes.board import Board


class Notes:
    """A board whose pools say one thing after the other, and then the last one for ever."""

    def __init__(self, *said: dict[str, Pool]) -> None:
        self.left = list(said)

    def pools(self) -> dict[str, Pool]:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def awaited(notes: Notes, seconds: float) -> tuple[str, ...]:
    return await_pools(cast("Board", notes), 7, now() + seconds)


READY = Pool(ready=7)


@pytest.mark.parametrize("said", [{}, {"a": READY}, {"a": READY, "b": READY}])
def test_nobody_waits_when_all_are_ready(said: dict[str, Pool]) -> None:
    assert awaited(Notes(said), 0.0) == ()


def test_they_are_asked_again_until_they_are() -> None:
    notes = Notes({"a": Pool(), "b": READY}, {"a": Pool(ready=6), "b": READY}, {"a": READY})
    assert awaited(notes, 30.0) == ()
    assert len(notes.left) == 1


def test_who_is_ready_for_another_page_is_late() -> None:
    notes = Notes({"a": Pool(ready=6), "b": READY, "c": Pool(ready=8)})
    assert awaited(notes, 0.05) == ("a", "c")


def test_who_goes_is_not_waited_for() -> None:
    assert awaited(Notes({"a": Pool()}, {}), 30.0) == ()
