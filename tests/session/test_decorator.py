"""@leader_only: each call leads once; what may not be decorated."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

import pytest
from session.troupe import PATH

import zkelect
from zkelect import AsyncElection, Election, Leadership, leader_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from session.troupe import Troupe


class Ran(Election):
    """Runs what it is told, and remembers for how long it would have waited."""

    waited: float | None = None

    def run(self, lead: Callable[[Leadership], Any], timeout: float | None = None) -> Any:
        self.waited = timeout
        return lead(cast("Leadership", "the leadership"))


@pytest.fixture
def election(troupe: Troupe) -> Ran:
    return Ran(troupe.connect(), PATH)


def test_the_leadership_comes_first_and_the_signature_goes_without(election: Ran) -> None:
    @leader_only(election, timeout=5.0)
    def rotate(leadership: Leadership, day: str, *, deep: bool = False) -> tuple[Any, ...]:
        """Rotate the logs."""
        return leadership, day, deep

    assert rotate("monday", deep=True) == ("the leadership", "monday", True)
    assert election.waited == 5.0
    assert list(inspect.signature(rotate).parameters) == ["day", "deep"]
    assert (rotate.__name__, rotate.__doc__) == ("rotate", "Rotate the logs.")


def test_who_takes_no_argument_or_is_of_the_other_kind_is_refused(
    election: Ran, troupe: Troupe
) -> None:
    decorate: Any = leader_only(election)
    awaited: Any = leader_only(AsyncElection(zkelect.AsyncSession(troupe.connect()), PATH))

    async def coroutine(leadership: Leadership) -> None: ...

    def ordinary(leadership: Leadership) -> None: ...

    with pytest.raises(zkelect.InvalidArgument, match="leadership first"):
        decorate(lambda: None)
    with pytest.raises(zkelect.InvalidArgument, match="leadership first"):
        decorate(lambda *, leadership: leadership)
    with pytest.raises(zkelect.InvalidArgument, match="AsyncElection"):
        decorate(coroutine)
    with pytest.raises(zkelect.InvalidArgument, match="coroutine function"):
        awaited(ordinary)


def test_a_function_of_any_arguments_keeps_its_signature(election: Ran) -> None:
    @leader_only(election)
    def lead(*args: Any) -> tuple[Any, ...]:
        return args

    assert lead(1, 2) == ("the leadership", 1, 2)
    assert str(inspect.signature(lead)).startswith("(*args")
