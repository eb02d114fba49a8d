"""What is adopted, and what not: the arithmetic of it, and whose stores they may be."""

from __future__ import annotations

import pytest
from stores.bearers import make_bearer, make_token

from zkelect import stores
from zkelect.core.record import Record, adopted
from zkelect.errors import DomainTaken, InvalidArgument, LineageMismatch
from zkelect.stores import MemoryFence
from zkelect.token import Token

OTHER = "f" * 16
RECORD = Record(uuid="1234567890abcdef" + "0" * 16, generation=3, version=7)


def adopt(*marks: Token, zxid: int = 100) -> Record | None:
    return adopted(RECORD, marks, zxid=zxid)


@pytest.mark.parametrize(
    "mark",
    [
        make_token(5, generation=3),
        make_token(100, generation=3),  # as high as the ensemble: the next one is higher
        make_token(500, generation=2),
    ],
)
def test_marks_that_the_next_token_passes_need_no_adoption(mark: Token) -> None:
    assert adopt(mark) is None


@pytest.mark.parametrize(
    ("mark", "generation"),
    [
        (make_token(101, generation=3), 4),  # from the ensemble's future
        (make_token(5, generation=9), 10),
        (make_token(5, generation=0, lineage=OTHER), 1),
        (make_token(5, generation=8, lineage=OTHER), 9),
    ],
)
def test_the_new_record_is_above_the_marks(mark: Token, generation: int) -> None:
    record = adopt(mark)
    assert record is not None
    assert (record.lineage, record.generation, record.version) == (mark.lineage, generation, 7)
    token = Token.issue(lineage=record.lineage, generation=record.generation, czxid=1, session_id=1)
    assert token > mark


def test_the_highest_of_many_marks_counts() -> None:
    record = adopt(make_token(5, generation=4), make_token(1, generation=6))
    assert record is not None
    assert record.generation == 7


def test_marks_of_two_lineages_are_not_adopted() -> None:
    with pytest.raises(LineageMismatch):
        adopt(make_token(5), make_token(5, lineage=OTHER))


def test_no_generation_is_left() -> None:
    with pytest.raises(InvalidArgument, match="generation"):
        adopt(make_token(5, generation=2**32 - 1))


def test_no_mark_is_told() -> None:
    with pytest.raises(InvalidArgument, match="at least one mark"):
        adopt()


# --- the stores' side ----------------------------------------------------------------------


class Election:
    """Remembers what it was told to adopt."""

    path = "/elections/d"

    def __init__(self) -> None:
        self.marks: tuple[Token, ...] = ()
        self.told: tuple[str, str | None] | None = None

    def adopt(self, *marks: Token, why: str, by: str | None, timeout: float) -> int:
        self.marks, self.told = marks, (why, by)
        return 9


def test_the_marks_of_all_stores_are_read() -> None:
    election, one, other, empty = Election(), *(MemoryFence(domain=d) for d in "abc")
    one.claim(make_bearer(5))
    other.claim(make_bearer(6))
    mark = other.status()
    assert mark is not None
    assert stores.adopt(election, one, mark, empty) == 9
    assert election.marks == (make_token(5), make_token(6))
    assert election.told == ("", None)


def test_who_adopts_and_why_is_passed_on() -> None:
    election, fence = Election(), MemoryFence(domain="d")
    fence.claim(make_bearer(5))
    stores.adopt(election, fence, why="restored", by="ada")
    assert election.told == ("restored", "ada")


def test_a_store_of_another_election_is_refused() -> None:
    election, fence = Election(), MemoryFence(domain="d")
    fence.claim(make_bearer(5, path="/elections/e"))
    with pytest.raises(DomainTaken, match="/elections/e"):
        stores.adopt(election, fence)
    assert election.marks == ()


def test_stores_without_a_mark_are_nothing_to_adopt() -> None:
    with pytest.raises(InvalidArgument, match="mark"):
        stores.adopt(Election(), MemoryFence(domain="d"))
