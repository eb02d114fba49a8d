"""When the keeper asks the command to end, and when it kills: instants in, acts out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.cli.run.keeper.plan import KILLING, Act, Plan

GRACE = 1.0
DEADLINE = 100.0
ASK = DEADLINE - KILLING - GRACE
KILL = DEADLINE - KILLING

instants = st.floats(0, 2 * DEADLINE)


def test_it_is_asked_when_the_grace_begins_and_killed_before_the_deadline() -> None:
    plan = Plan(GRACE, DEADLINE)
    assert plan.due(ASK - 0.001) is Act.NOTHING
    assert plan.next == ASK
    assert plan.due(ASK) is Act.TERMINATE
    plan = plan.did(Act.TERMINATE, ASK)
    assert plan.due(KILL - 0.001) is Act.NOTHING
    assert plan.next == pytest.approx(KILL)
    assert plan.due(KILL) is Act.KILL


def test_who_looks_too_late_kills_at_once() -> None:
    assert Plan(GRACE, DEADLINE).due(DEADLINE + 5) is Act.KILL


def test_each_renewal_moves_both() -> None:
    plan = Plan(GRACE, DEADLINE).renewed(DEADLINE + 3)
    assert plan.due(KILL) is Act.NOTHING
    assert (plan.next, plan.kill_at) == (ASK + 3, KILL + 3)


def test_a_deadline_never_falls() -> None:
    assert Plan(GRACE, DEADLINE).renewed(DEADLINE - 3).deadline == DEADLINE


def test_h72_an_end_that_has_begun_is_not_called_off_by_a_renewal() -> None:
    plan = Plan(GRACE, DEADLINE).did(Act.TERMINATE, ASK)
    assert plan.renewed(DEADLINE + 50) == plan


def test_h72_an_end_by_order_counts_its_grace_from_then_but_never_past_the_deadline() -> None:
    early = Plan(GRACE, DEADLINE).ended(50.0)
    assert (early.due(50.0), early.kill_at) == (Act.TERMINATE, 51.0)
    late = Plan(GRACE, DEADLINE).ended(DEADLINE - 0.5)
    assert late.kill_at == KILL


def test_a_second_order_gives_no_second_grace() -> None:
    plan = Plan(GRACE, DEADLINE).ended(50.0)
    assert plan.ended(50.9) == plan


def test_at_once_is_at_once_also_in_the_middle_of_a_grace() -> None:
    assert Plan(GRACE, DEADLINE).ended(50.0, at_once=True).due(50.0) is Act.KILL
    asked = Plan(GRACE, DEADLINE).ended(49.9).did(Act.TERMINATE, 49.9)
    assert asked.ended(50.0, at_once=True).due(50.0) is Act.KILL


def test_who_was_killed_is_killed_again_until_all_are_dead() -> None:
    plan = Plan(GRACE, DEADLINE).did(Act.KILL, KILL)
    assert plan.due(KILL) is Act.NOTHING
    assert KILL < plan.next < KILL + 0.2
    assert plan.due(plan.next) is Act.KILL


def test_without_grace_it_is_killed_without_being_asked() -> None:
    assert Plan(0.0, DEADLINE).due(KILL) is Act.KILL


@given(grace=st.floats(0, 50), orders=st.lists(st.tuples(instants, st.booleans())), last=instants)
def test_whatever_was_ordered_it_is_killed_by_the_deadline_that_was_proven(
    grace: float, orders: list[tuple[float, bool]], last: float
) -> None:
    plan = Plan(grace, DEADLINE)
    for now, at_once in orders:
        plan = plan.ended(now, at_once=at_once).renewed(last)
    assert plan.kill_at <= max(plan.deadline, DEADLINE) - KILLING
    assert plan.due(max(last, DEADLINE)) is Act.KILL
    assert not orders or plan.deadline == DEADLINE
