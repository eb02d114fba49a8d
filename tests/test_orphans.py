"""Orphans in a queue, and the number that comes next, by the facts of the servers' stats."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.orphans import Orphan, find_orphans, next_sequence
from zkelect.core.znodes import KAZOO, Entry

OURS: Final = "00000000000080008000000000000001"
KAZOOS: Final = "00000000000040008000000000000001"


def entry(uuid: str, sequence: int) -> Entry:
    found = KAZOO.parse(f"{uuid}__lock__{sequence:010d}")
    assert found is not None
    return found


def test_who_stands_once_in_a_session_of_its_own_is_none() -> None:
    assert find_orphans({}) == {}
    assert find_orphans({entry(OURS, 1): 7, entry(OURS, 2): 8, entry(KAZOOS, 3): 9}) == {}


def test_whoever_is_not_ephemeral_is_one() -> None:
    owners = {entry(OURS, 1): 0, entry(KAZOOS, 2): 0, entry(OURS, 3): 7}
    assert find_orphans(owners) == {
        entry(OURS, 1): Orphan.NOT_EPHEMERAL,
        entry(KAZOOS, 2): Orphan.NOT_EPHEMERAL,
    }


def test_the_later_one_of_a_session_of_ours_is_one_whatever_the_order_of_the_answers() -> None:
    """The lowest is adopted by its campaign, so the others are left over."""
    owners = {entry(OURS, 9): 7, entry(OURS, 2): 7, entry(OURS, 5): 7}
    assert find_orphans(owners) == {
        entry(OURS, 5): Orphan.SECOND,
        entry(OURS, 9): Orphan.SECOND,
    }


def test_other_libraries_may_stand_twice_in_one_session() -> None:
    assert find_orphans({entry(KAZOOS, 1): 7, entry(KAZOOS, 2): 7, entry(OURS, 3): 7}) == {}


def shown(creates: int, children: int) -> int:
    """Return the cversion that a server shows: 32 bits, signed (DataNode.copyStat)."""
    changes = (2 * creates - children) % 2**32
    return changes - 2**32 if changes >= 2**31 else changes


@given(st.integers(0, 2**31 - 1).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_next_number_is_how_many_were_created(counts: tuple[int, int]) -> None:
    creates, children = counts
    assert next_sequence(shown(creates, children), children) == creates


def test_it_is_right_beyond_the_number_where_the_stat_turns_negative() -> None:
    assert shown(2**30, 2) == 2**31 - 2
    assert shown(2**30 + 1, 2) < 0
    assert next_sequence(shown(2**30 + 1, 2), 2) == 2**30 + 1
    assert next_sequence(shown(2**31 - 1, 3), 3) == 2**31 - 1
