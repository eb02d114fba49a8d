"""Who wins, and the reason why each other one does not (H85)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from zkelect import InvalidArgument
from zkelect.recipes.choice import Policy, SyncSet, choose, judge
from zkelect.recipes.member import Done, Heartbeat, Member, Observed, Outcome, Role
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.position import Position

PAGE = Page(
    phase=Phase.FREEZE,
    serial=7,
    token="t",
    coordinator="b",
    primary="a",
    position=Position.parse("x@0:10"),
    reign="r",
    members=tuple(Member(name=name) for name in "abc"),
    system="s",
)
ANY = Policy(min_seen=1)


def beat(name: str, position: str | None = "x@0:20", **changes: Any) -> Heartbeat:
    """Return one that is frozen and well."""
    told = {key: changes.pop(key) for key in ("priority", "candidate") if key in changes}
    where = None if position is None else Position.parse(position)
    observed = Observed(role=Role.REPLICA, position=where, system="s")
    return Heartbeat(
        member=Member(name=name, **told),
        observed=attrs.evolve(observed, **changes),
        done=Done(serial=7, outcome=Outcome.DONE, position=where),
    )


def winner(*beats: Heartbeat, page: Page = PAGE, policy: Policy = ANY, **others: Any) -> str | None:
    return choose(beats, page, policy, others.get("sync")).winner


def reason(one: Heartbeat, *beats: Heartbeat, policy: Policy = ANY, **others: Any) -> str:
    page = others.get("page", PAGE)
    found = {each.name: each for each in judge((one, *beats), page, policy, others.get("sync"))}
    return found[one.name].reason


def test_h81_the_one_that_has_most_wins_whatever_its_name_and_priority() -> None:
    assert winner(beat("b", "x@0:20", priority=9), beat("c", "x@0:21")) == "c"


def test_priority_decides_between_equals_and_then_the_name() -> None:
    assert winner(beat("b"), beat("c", priority=1)) == "c"
    assert winner(beat("c"), beat("b")) == "b"


def test_h81_rows_that_were_never_open_for_writers_win_nothing() -> None:
    assert winner(beat("b", "x@0/y@19:40"), beat("c", "x@0:20")) == "c"
    assert winner(beat("b", "x@0/y@20:20"), beat("c", "x@0:20", priority=9)) == "b"


def test_h81_who_failed_in_this_change_is_taken_when_nobody_else_is_left() -> None:
    page = attrs.evolve(PAGE, passed_over=("c",))
    assert winner(beat("b", "x@0:20"), beat("c", "x@0:21"), page=page) == "b"
    assert winner(beat("c", "x@0:21"), page=page) == "c"


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (beat("b", candidate=False), "never promoted"),
        (beat("b", system="other"), "of another system: other, and not s"),
        (beat("b", rebuild="it has lost its disk"), "needs a rebuild: it has lost its disk"),
        (beat("b", role=Role.STOPPED, detail="no pid"), "its server is stopped: no pid"),
        (beat("b", role=Role.UNKNOWN), "its server is unknown"),
        (beat("b", healthy=False), "not healthy"),
        (beat("b", role=Role.PRIMARY), "still takes writes"),
        (beat("b", None), "position is not known"),
        (beat("b", "y@0:20"), "its history is another one: .* unrelated"),
        (beat("b", "x@0/y@5:20"), "its history is another one: .* diverged"),
        (attrs.evolve(beat("b"), done=None), "has not stopped its replication"),
        (
            attrs.evolve(beat("b"), done=Done(serial=7, outcome=Outcome.FAILED, detail="no")),
            "cannot stop its replication: no",
        ),
    ],
)
def test_h85_each_one_that_may_not_win_is_told_why(one: Heartbeat, told: str) -> None:
    assert winner(one) is None
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(reason(one))


def test_h85_one_that_is_not_there_is_listed_as_well() -> None:
    verdicts = {each.name: each.reason for each in judge([beat("b")], PAGE, ANY, None)}
    assert verdicts == {"a": "not there: its agent has no session", "b": "", "c": verdicts["a"]}


def test_lag_is_counted_from_the_most_advanced_and_from_what_was_heard_of_the_primary() -> None:
    policy = attrs.evolve(ANY, lag_limit=5)
    ahead = beat("c", "x@0:26")
    assert "6 behind, over 5" in reason(beat("b", "x@0:20"), ahead, policy=policy)
    assert reason(beat("b", "x@0:21"), ahead, policy=policy) == ""
    assert "9 behind" in reason(beat("b", "x@0:26", behind=9), policy=policy)
    later = attrs.evolve(PAGE, position=Position.parse("x@0/y@20:20"))
    assert "behind the last promotion" in reason(beat("b"), policy=policy, page=later)


def test_h81_in_synchronous_mode_only_who_is_recorded_may_win_or_the_primary_itself() -> None:
    policy = attrs.evolve(ANY, synchronous=True)
    sync = SyncSet(reign="r", names=("b",))
    assert winner(beat("b", "x@0:20"), beat("c", "x@0:30"), policy=policy, sync=sync) == "b"
    assert "not in the sync set, in which are: b" in reason(beat("c"), policy=policy, sync=sync)
    old = beat("a", "x@0:30", role=Role.DEMOTED)
    assert winner(old, beat("b"), policy=policy, sync=sync) == "a"


def test_h81_a_set_of_another_reign_is_void() -> None:
    policy = attrs.evolve(ANY, synchronous=True)
    stale = SyncSet(reign="before", names=("b",))
    for sync in (None, stale):
        assert "has recorded no sync set" in reason(beat("b"), policy=policy, sync=sync)


def test_h85_with_fewer_than_asked_for_nobody_wins() -> None:
    choice = choose([beat("b")], PAGE, attrs.evolve(ANY, min_candidates=2), None)
    assert (choice.winner, choice.reasons[0]) == (None, "1 eligible, and 2 must be")


@pytest.mark.parametrize(
    "wrong",
    [
        {"lag_limit": -1},
        {"lag_limit": 1.5},
        {"min_candidates": 0},
        {"min_seen": 0},
        {"patience": 0},
        {"cool_down": float("inf")},
        {"sync_size": 0},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        Policy(**wrong)
