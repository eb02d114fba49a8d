"""Positions: what may be compared, and what has gone another way."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect import InvalidArgument
from zkelect.recipes.position import Branch, Position, Relation, compare, trunk


def at(text: str) -> Position:
    return Position.parse(text)


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        ("x@0:5", "x@0:5", Relation.EQUAL),
        ("x@0:4", "x@0:5", Relation.BEHIND),
        ("x@0:5", "x@0/y@5:5", Relation.BEHIND),
        ("x@0:4", "x@0/y@5:9", Relation.BEHIND),
        ("x@0:6", "x@0/y@5:9", Relation.DIVERGED),
        ("x@0/y@5:9", "x@0/z@5:9", Relation.DIVERGED),
        ("x@0/2@5:9", "x@0/2@6:9", Relation.DIVERGED),
        ("x@0/y@5/z@7:9", "x@0/y@5:7", Relation.AHEAD),
        ("x@0:5", "y@0:5", Relation.UNRELATED),
    ],
)
def test_h82_one_stands_to_the_other_by_where_their_histories_part(
    one: str, other: str, relation: Relation
) -> None:
    opposite = {Relation.BEHIND: Relation.AHEAD, Relation.AHEAD: Relation.BEHIND}
    assert compare(at(one), at(other)) is relation
    assert compare(at(other), at(one)) is opposite.get(relation, relation)


@st.composite
def positions(draw: st.DrawFn) -> Position:
    starts = sorted(draw(st.lists(st.integers(0, 4), max_size=2)))
    ids = draw(st.lists(st.sampled_from("yz"), min_size=len(starts), max_size=len(starts)))
    history = (Branch("x"), *itertools.starmap(Branch, zip(ids, starts, strict=True)))
    return Position(history, draw(st.integers(starts[-1] if starts else 0, 6)))


@given(positions(), positions(), positions())
def test_who_has_all_of_one_that_has_all_of_another_has_all_of_that(
    one: Position, two: Position, three: Position
) -> None:
    has_all = (Relation.EQUAL, Relation.BEHIND)
    if compare(one, two) in has_all and compare(two, three) in has_all:
        assert compare(one, three) in has_all


@given(positions())
def test_text_and_position_are_inverse(position: Position) -> None:
    assert Position.parse(str(position)) == position


def test_rows_on_a_branch_that_nobody_recorded_count_nothing() -> None:
    recorded = at("x@0:2")
    assert trunk(at("x@0/y@4:9"), recorded) == (1, 4)
    assert trunk(at("x@0:5"), recorded) == (1, 5)
    assert trunk(at("z@0:5"), recorded) == (0, 0)


@pytest.mark.parametrize("text", ["", "x@0", "x@0:", "x:3", "x@0:-1", "@0:1", "x@a:1", ":1"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        Position.parse(text)


def test_a_history_has_a_beginning() -> None:
    with pytest.raises(InvalidArgument, match="at least one Branch"):
        Position((), 1)
