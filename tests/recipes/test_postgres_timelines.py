"""History files, and what a server must do to follow another one (H82)."""

from __future__ import annotations

import pytest

import zkelect
from zkelect.recipes.position import Position
from zkelect.recipes.postgres.lsn import Lsn
from zkelect.recipes.postgres.timelines import Fork, History, Verdict, judge, timeline_of

SYSTEM = "7713976267095447155"


def at(timeline: int, lsn: str, *forks: tuple[int, str], system: str = SYSTEM) -> Position:
    history = History(timeline, tuple(Fork(number, Lsn.parse(end)) for number, end in forks))
    return history.position(system, Lsn.parse(lsn))


# --- history files ---------------------------------------------------------------------------


def test_a_history_file_is_read_with_its_comments_and_reasons() -> None:
    text = (
        "1\t0/3000000\tno recovery target specified\n"
        "\n"
        "# a comment\n"
        "2\t0/5000108\tbefore 2026-11-30 14:47:40.164+00\n"
    )
    forks = (Fork(1, Lsn.parse("0/3000000")), Fork(2, Lsn.parse("0/5000108")))
    assert History.parse(3, text) == History(3, forks)


def test_the_first_timeline_has_no_file() -> None:
    assert History.parse(1, "") == History(1)


@pytest.mark.parametrize(
    "text", ["x\t0/1\twhy\n", "1\n", "1\tnowhere\twhy\n", "2\t0/1\t\n1\t0/2\t\n", "3\t0/1\twhy\n"]
)
def test_a_history_file_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(zkelect.InvalidArgument):
        History.parse(3, text)


def test_a_position_has_each_timeline_with_where_it_began() -> None:
    position = at(3, "0/900", (1, "0/300"), (2, "0/500"))
    assert str(position) == f"{SYSTEM}-1@0/2@{0x300}/3@{0x500}:{0x900}"
    assert timeline_of(position) == 3
    assert timeline_of(at(1, "0/900")) == 1


# --- what it takes to follow -------------------------------------------------------------------

PRIMARY = at(2, "0/900", (1, "0/500"))


@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(at(2, "0/900", (1, "0/500")), id="equal"),
        pytest.param(at(2, "0/700", (1, "0/500")), id="behind"),
        pytest.param(at(1, "0/400"), id="older timeline, behind its end"),
        pytest.param(at(1, "0/500"), id="older timeline, exactly at its end"),
    ],
)
def test_a_part_of_the_history_follows(ours: Position) -> None:
    assert judge(ours, PRIMARY) is Verdict.FOLLOW


@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(at(1, "0/501"), id="one byte too much on the old timeline"),
        pytest.param(at(1, "0/A00"), id="more WAL than the primary has"),
        pytest.param(at(3, "0/600", (1, "0/400")), id="promoted apart, earlier"),
        pytest.param(at(3, "0/901", (1, "0/500"), (2, "0/900")), id="promoted from the primary"),
    ],
)
def test_extra_wal_is_rewound(ours: Position) -> None:
    assert judge(ours, PRIMARY) is Verdict.REWIND


@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(at(2, "0/600", (1, "0/400")), id="same number, other history"),
        pytest.param(at(2, "0/901", (1, "0/500")), id="same timeline, more than the primary"),
        pytest.param(at(1, "0/400", system="1"), id="another cluster"),
        pytest.param(at(2, "0/900", (1, "0/500"), system="1"), id="another cluster, same LSN"),
    ],
)
def test_h82_what_pg_rewind_would_merge_is_rebuilt(ours: Position) -> None:
    assert judge(ours, PRIMARY) is Verdict.REBUILD
