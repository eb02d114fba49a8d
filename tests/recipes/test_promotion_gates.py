"""When a change of the primary does not begin, or does not go on: one reason after the other."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from zkelect.recipes.choice import Policy
from zkelect.recipes.duty import Act, duty_of
from zkelect.recipes.member import Answer, Done, Heartbeat, Member, Observed, Outcome, Role
from zkelect.recipes.page import Page, Phase, Request
from zkelect.recipes.position import Position
from zkelect.recipes.promotion import advance
from zkelect.recipes.view import Resign, View, Wait, Write

HERE = Position.parse("x@0:10")
POLICY = Policy()
STEADY = Page(
    phase=Phase.STEADY,
    serial=5,
    token="t1",
    coordinator="b",
    primary="a",
    position=HERE,
    promoted_by="t1",
    reign="t1",
    primary_token="p1",
    members=tuple(Member(name=name) for name in "abc"),
    system="s",
)
DEMOTE = attrs.evolve(STEADY, phase=Phase.DEMOTE)


def beat(name: str, role: Role = Role.REPLICA, **changes: Any) -> Heartbeat:
    told = {key: changes.pop(key) for key in ("done", "token") if key in changes}
    sees, witnessed = changes.pop("sees", Answer.NO), changes.pop("witnessed", "a")
    observed = attrs.evolve(Observed(role=role, position=HERE, system="s"), **changes)
    member = Member(name=name)
    return Heartbeat(member=member, observed=observed, sees=sees, witnessed=witnessed, **told)


PRIMARY = beat("a", Role.PRIMARY, token="p1")
OTHERS = (beat("b"), beat("c"))


def view(*beats: Heartbeat, **changes: Any) -> View:
    return attrs.evolve(View(token="t2", coordinator="b", beats=beats, failing=99.0), **changes)


def reasons(page: Page | None, seen: View, policy: Policy = POLICY) -> str:
    decision = advance(page, seen, policy)
    assert isinstance(decision, Wait), decision
    return "; ".join(decision.reasons)


def written(page: Page | None, seen: View, policy: Policy = POLICY) -> Page:
    decision = advance(page, seen, policy)
    assert isinstance(decision, Write), decision
    return decision.page


# --- a fail-over begins only when everything speaks for it ---------------------------------------


def test_a_primary_that_is_gone_is_replaced() -> None:
    page = written(STEADY, view(*OTHERS))
    assert (page.phase, page.planned, page.serial) == (Phase.DEMOTE, False, 6)
    assert page.why == "the agent of a is not there"


def test_a_primary_that_is_well_is_left_alone() -> None:
    assert advance(STEADY, view(PRIMARY, *OTHERS), POLICY) == Wait()


@pytest.mark.parametrize(
    ("page", "seen", "why"),
    [
        (STEADY, view(*OTHERS, failing=0.1), "borne for 2 s"),
        (STEADY, view(*OTHERS, paused="paused by ada"), "paused by ada"),
        (attrs.evolve(STEADY, cooling=True), view(*OTHERS), "cool-down"),
        (STEADY, view(*OTHERS, holder="a"), "a has the right to be writable still"),
        (STEADY, view(beat("b")), "1 others are there, and 2 must be; not there: c"),
        (STEADY, view(beat("b", sees=Answer.YES), beat("c")), "b sees that a takes writes"),
        (STEADY, view(beat("b"), beat("c", sees=Answer.UNKNOWN)), "c cannot tell whether a takes"),
        (STEADY, view(beat("b"), beat("c", witnessed="b")), "c cannot tell whether a takes"),
        (
            STEADY,
            view(beat("b", healthy=False), beat("c", rebuild="of old")),
            "b: it is not healthy; c: it needs a rebuild: of old",
        ),
    ],
)
def test_h81_h85_one_thing_against_it_is_enough(page: Page, seen: View, why: str) -> None:
    assert why in reasons(page, seen)


def test_a_primary_that_is_there_and_failing_needs_no_witness() -> None:
    others = (beat("b", sees=Answer.YES), beat("c", sees=Answer.UNKNOWN))
    crashed = beat("a", Role.STOPPED, healthy=False, token="p1")
    assert written(STEADY, view(crashed, *others, holder="a")).phase is Phase.DEMOTE


def test_how_many_must_be_there_can_be_said() -> None:
    assert written(STEADY, view(beat("b")), Policy(min_seen=1)).phase is Phase.DEMOTE


def test_a_primary_whose_lease_ran_out_and_that_nobody_replaced_is_promoted_anew() -> None:
    page = written(STEADY, view(beat("a", Role.DEMOTED), *OTHERS, failing=0.0))
    assert (page.phase, page.winner, page.planned) == (Phase.PROMOTE, "a", False)


@pytest.mark.parametrize(
    ("old", "other"),
    [
        ("x@0:3", "x@0:3"),  # less than was open: it came back empty, or from a copy
        ("x@0/y@5:20", "x@0:10"),
        ("x@0:20", "x@0:21"),
        (None, "x@0:10"),
    ],
)
def test_h83_one_that_came_back_with_less_is_compared_with_the_others(
    old: str | None, other: str
) -> None:
    where = None if old is None else Position.parse(old)
    primary = beat("a", Role.DEMOTED, position=where)
    others = (beat("b", position=Position.parse(other)), beat("c"))
    assert "a is demoted" in reasons(STEADY, view(primary, *others, failing=0.0))
    assert written(STEADY, view(primary, *others)).phase is Phase.DEMOTE


# --- whether the old primary takes writes ------------------------------------------------------


def done(**changes: Any) -> Done:
    return attrs.evolve(Done(serial=5, outcome=Outcome.DONE), **changes)


@pytest.mark.parametrize(
    ("beats", "policy", "why"),
    [
        ((beat("a", Role.PRIMARY), *OTHERS), POLICY, "a has not been demoted yet"),
        (
            (beat("a", done=done(outcome=Outcome.FAILED, detail="no")), *OTHERS),
            POLICY,
            "a has not been demoted yet: no",
        ),
        ((beat("a", Role.PRIMARY, done=done()), *OTHERS), POLICY, "a says that it is demoted, and"),
        (OTHERS, POLICY, "b has not tried to fence a yet"),
        (
            (beat("b", done=done(answer=Answer.UNKNOWN)), beat("c")),
            POLICY,
            "is fenced is not known",
        ),
        (
            (beat("b", done=done(answer=Answer.NO)), beat("c")),
            Policy(require_fence=True),
            "require_fence",
        ),
        (
            (beat("b", done=done(answer=Answer.NO)), beat("c", sees=Answer.YES)),
            POLICY,
            "c sees that a takes writes",
        ),
    ],
)
def test_h81_until_that_is_certain_nothing_is_compared(
    beats: tuple[Heartbeat, ...], policy: Policy, why: str
) -> None:
    assert why in reasons(DEMOTE, view(*beats), policy)


@pytest.mark.parametrize(
    ("beats", "policy"),
    [
        ((beat("a", Role.DEMOTED, done=done()), *OTHERS), Policy(require_fence=True)),
        ((beat("b", done=done(answer=Answer.NO)), beat("c")), POLICY),
        (
            (beat("b", done=done(answer=Answer.YES)), beat("c", sees=Answer.YES)),
            Policy(require_fence=True),
        ),
    ],
)
def test_it_has_said_so_or_was_fenced_or_has_no_lease_and_nobody_sees_it(
    beats: tuple[Heartbeat, ...], policy: Policy
) -> None:
    assert written(DEMOTE, view(*beats), policy).phase is Phase.FREEZE


def test_h81_another_coordinator_tries_to_fence_it_anew() -> None:
    page = written(DEMOTE, view(*OTHERS, coordinator="c"))
    assert (page.phase, page.coordinator, page.serial) == (Phase.DEMOTE, "c", 6)


def test_h85_why_others_did_not_win_is_told_with_the_winner() -> None:
    page = attrs.evolve(STEADY, phase=Phase.FREEZE, why="the agent of a is not there")
    frozen = beat("b", done=done(position=HERE))
    ill = beat("c", done=done(position=HERE), healthy=False, detail="its disk is full")
    chosen = written(page, view(frozen, ill))
    assert chosen.winner == "b"
    told = "the agent of a is not there; not c: it is not healthy: its disk is full"
    assert chosen.why == told


# --- between catching up and the promotion -----------------------------------------------------

CAUGHT_UP = attrs.evolve(STEADY, phase=Phase.CATCH_UP, winner="b")
READY = (beat("b", done=done(position=HERE)), beat("c"))


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (view(*READY, paused="paused by ada"), "paused by ada"),
        (view(*READY, holder="a"), "a has the right to be writable still"),
        (view(*READY, beat("a", Role.PRIMARY)), "a takes writes still"),
    ],
)
def test_h81_h84_before_the_promotion_all_is_looked_at_again(seen: View, why: str) -> None:
    assert why in reasons(CAUGHT_UP, seen)


def test_h81_a_term_orders_one_promotion_and_the_next_one_another() -> None:
    spent = attrs.evolve(CAUGHT_UP, promoted_by="t2")
    assert isinstance(advance(spent, view(*READY), POLICY), Resign)
    page = written(spent, view(*READY, token="t3"))
    assert (page.phase, page.promoted_by) == (Phase.PROMOTE, "t3")


def test_h81_what_was_done_with_another_leadership_is_not_opened() -> None:
    page = attrs.evolve(CAUGHT_UP, phase=Phase.PROMOTE, promoted_by="t2")
    new = Position.parse("x@0/y@10:10")
    claimed = done(position=new, token="p2")
    assert "is being promoted" in reasons(page, view(beat("b", done=claimed, token="p3")))
    assert "is being promoted" in reasons(page, view(beat("b", done=done(position=HERE))))
    opened = written(page, view(beat("b", done=claimed, token="p2")))
    assert (opened.phase, opened.primary_token, opened.reign) == (Phase.OPEN, "p2", "t2")
    assert (opened.primary, opened.position) == ("b", new)


def test_h81_a_winner_that_loses_its_lease_before_it_is_open_has_failed_as_the_primary() -> None:
    """It may have let writers in: so it is what the others are compared with."""
    opening = attrs.evolve(CAUGHT_UP, phase=Phase.OPEN, primary="b", primary_token="p2")
    assert "is being opened" in reasons(opening, view(beat("b", token="p2")))
    page = written(opening, view(beat("b", token="p3")))
    assert (page.phase, page.primary, page.planned) == (Phase.DEMOTE, "b", False)


# --- the first page ----------------------------------------------------------------------------


def test_a_cluster_that_runs_is_taken_over_with_its_primary() -> None:
    page = written(None, view(PRIMARY, *OTHERS))
    assert (page.phase, page.winner, page.primary, page.position) == (
        Phase.PROMOTE,
        "a",
        None,
        HERE,
    )
    assert [member.name for member in page.members] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (view(*OTHERS), "one server must be the primary; these are: none"),
        (view(PRIMARY, beat("b", Role.PRIMARY)), "these are: a, b"),
        (view(PRIMARY, beat("b", system="z")), "more than one cluster on this path: systems s, z"),
        (view(PRIMARY, paused="paused by ada"), "paused by ada"),
    ],
)
def test_what_is_not_clear_to_begin_with_is_not_begun(seen: View, why: str) -> None:
    assert why in reasons(None, seen)


# --- switchovers -------------------------------------------------------------------------------


def test_a_switchover_is_refused_in_words_and_may_be_asked_for_again() -> None:
    ask = view(PRIMARY, *OTHERS, request=Request(id="q", to="d"))
    page = written(STEADY, ask)
    assert (page.phase, page.request, page.refused) == (Phase.STEADY, "q", "d is not there")
    assert advance(page, ask, POLICY) == Wait()


@pytest.mark.parametrize(
    ("to", "changes", "why"),
    [
        ("a", {}, "a is the primary"),
        ("b", {"paused": "paused by ada"}, "paused by ada"),
        ("c", {"beats": (PRIMARY, beat("b"), beat("c", healthy=False))}, "c: it is not healthy"),
    ],
)
def test_a_switchover_that_cannot_go_well_is_not_begun(
    to: str, changes: dict[str, Any], why: str
) -> None:
    seen = attrs.evolve(view(PRIMARY, *OTHERS, request=Request(id="q", to=to)), **changes)
    page = written(STEADY, seen)
    assert (page.phase, page.serial) == (Phase.STEADY, 5)
    assert why in page.refused


@pytest.mark.parametrize(
    ("to", "beats", "why"),
    [("a", (PRIMARY, *OTHERS), "a is the primary"), ("b", (PRIMARY, OTHERS[1]), "b is not there")],
)
def test_of_who_cannot_follow_at_all_nothing_else_is_said(
    to: str, beats: tuple[Heartbeat, ...], why: str
) -> None:
    assert written(STEADY, view(*beats, request=Request(id="q", to=to))).refused == why


def test_a_member_that_is_gone_for_good_is_forgotten_and_one_that_is_there_is_not() -> None:
    gone = Request(id="q", forget="c")
    page = written(STEADY, view(PRIMARY, beat("b"), request=gone))
    assert [member.name for member in page.members] == ["a", "b"]
    assert (page.request, page.serial, page.refused) == ("q", 5, "")
    assert "c is there" in written(STEADY, view(PRIMARY, *OTHERS, request=gone)).refused
    never = view(PRIMARY, *OTHERS, request=Request(id="q", forget="x"))
    assert "never been a x" in written(STEADY, never).refused


def test_h84_in_a_switchover_only_the_target_is_waited_for() -> None:
    page = attrs.evolve(STEADY, phase=Phase.FREEZE, planned=True, winner="b", target=HERE)
    old = beat("a", Role.DEMOTED)
    frozen = beat("b", done=done(position=HERE))
    assert written(page, view(old, frozen, beat("c"))).phase is Phase.CATCH_UP
    assert "not frozen yet: b" in reasons(page, view(old, *OTHERS))


LATE = {"elapsed": 99.0}
OLD = beat("a", Role.DEMOTED)


@pytest.mark.parametrize(
    ("phase", "beats", "changes", "why"),
    [
        (Phase.DEMOTE, (PRIMARY, *OTHERS), LATE, "a did not demote within 30 s"),
        (
            Phase.DEMOTE,
            (attrs.evolve(PRIMARY, done=done(outcome=Outcome.FAILED, detail="no")), *OTHERS),
            {},
            "a failed to demote: no",
        ),
        (Phase.DEMOTE, (attrs.evolve(OLD, done=done()), *OTHERS), {}, "what it has written last"),
        (Phase.DEMOTE, (PRIMARY, beat("c")), {}, "b is not there any more"),
        (Phase.FREEZE, (OLD, *OTHERS), LATE, "b did not freeze within 30 s"),
        (Phase.FREEZE, (OLD, beat("c")), LATE, "the agent of b is not there"),
        (
            Phase.FREEZE,
            (OLD, beat("b", done=done(position=Position.parse("x@0:9"))), beat("c")),
            {},
            "b is behind: it has x@0:9, and not x@0:10",
        ),
        (
            Phase.FREEZE,
            (OLD, beat("b", done=done(position=HERE), healthy=False), beat("c")),
            {},
            "b: it is not healthy",
        ),
        (Phase.CATCH_UP, (OLD, *OTHERS), LATE, "b did not catch-up within 30 s"),
    ],
)
def test_h84_a_switchover_that_does_not_go_well_is_taken_back(
    phase: Phase, beats: tuple[Heartbeat, ...], changes: dict[str, Any], why: str
) -> None:
    """The old primary lacks nothing: it is promoted again, by a page like any other."""
    page = attrs.evolve(STEADY, phase=phase, planned=True, winner="b", target=HERE)
    back = written(page, view(*beats, **changes))
    assert (back.phase, back.winner, back.planned) == (Phase.PROMOTE, "a", False)
    assert back.refused.startswith("rolled back: ")
    assert why in back.refused


def test_h84_what_the_old_primary_wrote_last_is_what_the_new_one_must_have() -> None:
    last = Position.parse("x@0:12")
    page = attrs.evolve(STEADY, phase=Phase.DEMOTE, planned=True, winner="b")
    demoted = attrs.evolve(OLD, done=done(position=last))
    assert "a is being demoted" in reasons(page, view(PRIMARY, *OTHERS))
    asked = written(page, view(demoted, *OTHERS))
    assert (asked.phase, asked.winner, asked.target) == (Phase.FREEZE, "b", last)


def test_a_switchover_whose_old_primary_is_gone_is_a_fail_over() -> None:
    page = attrs.evolve(STEADY, phase=Phase.FREEZE, planned=True, winner="b", target=HERE)
    change = written(page, view(*OTHERS, elapsed=99.0))
    assert (change.phase, change.planned, change.winner) == (Phase.DEMOTE, False, None)


def test_without_a_name_the_best_one_is_taken() -> None:
    page = written(STEADY, view(PRIMARY, *OTHERS, request=Request(id="q")))
    assert (page.phase, page.planned, page.winner) == (Phase.DEMOTE, True, "b")


# --- duties ------------------------------------------------------------------------------------

OPEN = attrs.evolve(STEADY, phase=Phase.OPEN, winner="b", primary="b", primary_token="p2")
PROMOTE = attrs.evolve(STEADY, phase=Phase.PROMOTE, winner="b")


@pytest.mark.parametrize(
    ("page", "name", "role", "token", "act"),
    [
        (None, "a", Role.PRIMARY, "", Act.NOTHING),
        (STEADY, "a", Role.PRIMARY, "p1", Act.NOTHING),
        (STEADY, "a", Role.PRIMARY, "", Act.DEMOTE),
        (STEADY, "a", Role.PRIMARY, "p0", Act.DEMOTE),
        (STEADY, "a", Role.DEMOTED, "", Act.NOTHING),
        (STEADY, "b", Role.REPLICA, "", Act.FOLLOW),
        (STEADY, "b", Role.PRIMARY, "", Act.DEMOTE),
        (STEADY, "b", Role.REPLICA, "p9", Act.DEMOTE),
        (DEMOTE, "a", Role.PRIMARY, "p1", Act.DEMOTE),
        (DEMOTE, "b", Role.REPLICA, "", Act.FENCE),
        (attrs.evolve(DEMOTE, planned=True), "b", Role.REPLICA, "", Act.NOTHING),
        (attrs.evolve(DEMOTE, phase=Phase.FREEZE), "a", Role.DEMOTED, "", Act.NOTHING),
        (attrs.evolve(DEMOTE, phase=Phase.FREEZE), "c", Role.REPLICA, "", Act.FREEZE),
        (CAUGHT_UP, "b", Role.REPLICA, "", Act.CATCH_UP),
        (CAUGHT_UP, "c", Role.REPLICA, "", Act.NOTHING),
        (PROMOTE, "b", Role.REPLICA, "", Act.PROMOTE),
        (PROMOTE, "b", Role.PRIMARY, "p2", Act.PROMOTE),
        (PROMOTE, "b", Role.PRIMARY, "", Act.DEMOTE),
        (attrs.evolve(PROMOTE, primary=None), "b", Role.PRIMARY, "", Act.PROMOTE),
        (OPEN, "b", Role.PRIMARY, "p2", Act.OPEN),
        (OPEN, "b", Role.PRIMARY, "p3", Act.DEMOTE),
        (OPEN, "a", Role.DEMOTED, "", Act.NOTHING),
    ],
)
def test_h82_a_page_gives_each_member_at_most_one_duty(
    page: Page | None, name: str, role: Role, token: str, act: Act
) -> None:
    assert duty_of(page, name, Observed(role=role), token=token) is act
