"""When to stand again: behind at once, unless one keeps failing while others could lead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.holddown import FIRST_BACKOFF, LONGEST_BACKOFF, HoldDown

TIMEOUT = 10.0


def failing(times: int) -> HoldDown:
    hold_down = HoldDown(TIMEOUT)
    for number in range(times):
        hold_down.end(float(number), involuntary=True, unprepared=True)
    return hold_down


def test_who_resigned_stands_again_at_once_when_others_stand() -> None:
    hold_down = HoldDown(TIMEOUT)
    hold_down.end(0.0, involuntary=False)
    assert hold_down.wait(1.0, others=True) == 0.0


@pytest.mark.parametrize(("jitter", "wait"), [(0.0, 0.0), (0.5, 1.25), (1.0, 2.5)])
def test_alone_it_waits_at_most_a_jittered_quarter_of_the_timeout(
    jitter: float, wait: float
) -> None:
    assert HoldDown(TIMEOUT).wait(jitter, others=False) == wait


def test_h44_two_involuntary_ends_hold_nobody_back() -> None:
    hold_down = HoldDown(TIMEOUT)
    for at in (0.0, 50.0):
        hold_down.end(at, involuntary=True)
    assert hold_down.wait(1.0, others=True) == 0.0


def test_h44_three_involuntary_ends_within_ten_timeouts_hold_it_back() -> None:
    hold_down = HoldDown(TIMEOUT)
    for at in (0.0, 50.0, 100.0):
        hold_down.end(at, involuntary=True)
    assert hold_down.wait(1.0, others=True) == FIRST_BACKOFF
    hold_down.end(101.0, involuntary=True)
    assert hold_down.wait(1.0, others=True) == 2 * FIRST_BACKOFF


def test_three_involuntary_ends_in_a_longer_time_do_not() -> None:
    hold_down = HoldDown(TIMEOUT)
    for at in (0.0, 50.0, 100.1):
        hold_down.end(at, involuntary=True)
    assert hold_down.wait(1.0, others=True) == 0.0


def test_h44_a_flapping_candidate_alone_leads_again_soon() -> None:
    assert failing(9).wait(1.0, others=False) == TIMEOUT / 4


def test_h47_each_failed_prepare_doubles_the_ceiling() -> None:
    waits = [failing(times).wait(1.0, others=True) for times in range(9)]
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_BACKOFF, LONGEST_BACKOFF]


def test_the_jitter_is_full() -> None:
    assert failing(4).wait(0.0, others=True) == 0.0
    assert failing(4).wait(0.25, others=True) == 2.0


def test_a_term_that_went_well_forgets_the_failures() -> None:
    hold_down = failing(5)
    hold_down.end(1000.0, involuntary=False)
    assert hold_down.wait(1.0, others=True) == 0.0


def test_a_term_that_went_well_is_no_failure_however_many_went_before() -> None:
    hold_down = HoldDown(TIMEOUT)
    for at in (0.0, 1.0, 2.0):
        hold_down.end(at, involuntary=True)
    hold_down.end(3.0, involuntary=False)
    assert hold_down.wait(1.0, others=True) == 0.0
    hold_down.end(4.0, involuntary=True)
    assert hold_down.wait(1.0, others=True) == FIRST_BACKOFF, "the ends are remembered"


def test_it_can_fail_for_ever() -> None:
    assert failing(5000).wait(1.0, others=True) == LONGEST_BACKOFF


@given(
    ends=st.lists(st.tuples(st.floats(0, 50), st.booleans(), st.booleans()), max_size=30),
    jitter=st.floats(0, 1),
)
def test_no_wait_is_longer_than_the_longest(
    ends: list[tuple[float, bool, bool]], jitter: float
) -> None:
    hold_down, at = HoldDown(TIMEOUT), 0.0
    for after, involuntary, unprepared in ends:
        at += after
        hold_down.end(at, involuntary=involuntary, unprepared=unprepared)
    assert 0.0 <= hold_down.wait(jitter, others=True) <= LONGEST_BACKOFF
    assert 0.0 <= hold_down.wait(jitter, others=False) <= TIMEOUT / 4
