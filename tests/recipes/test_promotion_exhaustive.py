"""The promises of a promotion, in every world near each step of each of its paths.

H81 on the pure machine: coordinators die, agents fail, answers are lost, servers die and are cut
off, at every boundary; broken engines have to be found out by the same search.
"""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest
from recipes.promotion_search import Violation, beginning, path, search, walk
from recipes.promotion_world import Rules, World, moves

from recipes import promotion_controls as controls
from zkelect.recipes.choice import Policy
from zkelect.recipes.page import Phase, Request
from zkelect.recipes.position import Relation, compare

SYNC = Policy(synchronous=True, min_seen=1)
ASYNC = Policy(min_seen=1)

both_modes = pytest.mark.parametrize("policy", [SYNC, ASYNC], ids=["sync", "async"])


def switchover(policy: Policy, to: str = "b") -> World:
    request = Request(id="q", to=to, by="somebody")
    return attrs.evolve(beginning(lagging=not policy.synchronous), request=request)


def fail_over(policy: Policy) -> World:
    start = beginning(lagging=not policy.synchronous)
    return dict(moves(start, Rules(policy=policy, kinds=frozenset({"dies"}))))["dies a"]


def cut_off(*, apart: bool = False) -> World:
    start = beginning(lagging=True)
    primary = start.servers[0]
    ghost = primary.observed()
    return start.put(attrs.evolve(primary, cut=True, apart=apart, ghost=ghost))


BEGINNINGS = {"switchover": switchover, "fail-over": fail_over}
both_paths = pytest.mark.parametrize("change", BEGINNINGS)


# --- nothing fails -------------------------------------------------------------------------------


@both_modes
@both_paths
def test_h81_a_change_passes_all_phases_in_order_and_the_most_advanced_wins(
    change: str, policy: Policy
) -> None:
    worlds = path(BEGINNINGS[change](policy), Rules(policy=policy))
    phases = [world.page.phase for world in worlds if world.page is not None]
    assert list(dict.fromkeys(phases)) == [
        Phase.STEADY,
        Phase.DEMOTE,
        Phase.FREEZE,
        Phase.CATCH_UP,
        Phase.PROMOTE,
        Phase.OPEN,
    ]
    last = worlds[-1].page
    assert last is not None
    assert (last.phase, last.primary, last.refused) == (Phase.STEADY, "b", "")


@both_modes
@both_paths
def test_h82_the_old_primary_comes_back_as_a_replica_without_what_only_it_had(
    change: str, policy: Policy
) -> None:
    last = path(BEGINNINGS[change](policy), Rules(policy=policy))[-1]
    old, new = last.servers[0], last.servers[1]
    assert (old.role, old.following) == ("replica", "b")
    assert compare(old.position, new.position) in (Relation.EQUAL, Relation.BEHIND)


def test_h81_a_primary_cut_off_from_zookeeper_only_is_demoted_before_another_is_opened() -> None:
    worlds = path(cut_off(), Rules(policy=ASYNC))
    opened = next(at for at, world in enumerate(worlds) if world.servers[1].writes)
    demoted = next(at for at, world in enumerate(worlds) if not world.servers[0].writes)
    assert demoted < opened


def test_h84_a_switchover_to_one_that_lags_is_rolled_back() -> None:
    last = path(switchover(ASYNC, to="c"), Rules(policy=ASYNC))[-1]
    assert last.page is not None
    assert (last.page.primary, last.servers[0].writes) == ("a", True)
    assert last.page.refused.startswith("rolled back: c is behind")


# --- every interrupted prefix --------------------------------------------------------------------


@pytest.mark.timeout(900)
@both_modes
@both_paths
def test_h81_whatever_happens_at_any_step_the_promises_hold_and_it_ends(
    change: str, policy: Policy, times: Any
) -> None:
    """From each world on the path: up to two faults, in any order with all that goes on."""
    start, rules = BEGINNINGS[change](policy), Rules(policy=policy)
    happened: set[str] = set()
    for world in path(start, rules):
        near = attrs.evolve(rules, faults=world.faults + 2)
        report = search(world, near, worlds=times(120, 1_500), heal_every=10)
        happened |= report.happened
    kinds = {"coordinator dies", "pause", "dies b", "cut c", "apart b", "b freeze failed"}
    assert kinds <= happened
    assert {"b promote, untold", "b open failed", "b catch up failed"} <= happened
    if change == "fail-over":
        assert {"look in doubt", "b fence", "b fence in doubt"} <= happened


@both_modes
@both_paths
def test_h81_after_each_single_fault_at_each_step_it_ends_in_every_order(
    change: str, policy: Policy
) -> None:
    start, rules = BEGINNINGS[change](policy), Rules(policy=policy)
    calm = attrs.evolve(rules, faults=0, writes=0)
    for at, world in enumerate(path(start, rules)):
        faulty = attrs.evolve(rules, faults=world.faults + 1)
        for _, after in moves(world, faulty):
            walk(after, calm, chance=random.Random(at), steps=0)


@pytest.mark.timeout(900)
@both_modes
@both_paths
def test_long_ways_by_chance_keep_the_promises_and_end(
    change: str, policy: Policy, times: Any
) -> None:
    rules = Rules(policy=policy, faults=5, writes=3)
    for seed in range(times(60, 1_000)):
        walk(BEGINNINGS[change](policy), rules, chance=random.Random(seed), steps=120)


# --- whom the search finds out -------------------------------------------------------------------


def found(policy: Policy, request: bool, **broken: Any) -> str:
    rules = attrs.evolve(Rules(policy=policy, faults=3, writes=2), **broken)
    start = switchover(policy, to="c") if request else beginning(lagging=not policy.synchronous)
    for seed in range(300):
        try:
            walk(start, rules, chance=random.Random(seed), steps=120)
        except Violation as violation:
            return violation.promise
    return "nothing"


@pytest.mark.parametrize(
    ("step", "policy", "request_it", "promise"),
    [
        (controls.never_resigns, ASYNC, False, "two promotions with one token"),
        (controls.first_by_name, ASYNC, False, "another has more"),
        (controls.first_by_name, SYNC, False, "which was acknowledged"),
        (controls.blind_to_sync, SYNC, True, "which was acknowledged"),
        (controls.promotes_the_lagging, ASYNC, True, "lacks something"),
        (controls.never_gives_up, ASYNC, False, "does not come to an end"),
    ],
)
def test_a_broken_coordinator_is_found_out(
    step: Any, policy: Policy, request_it: bool, promise: str
) -> None:
    assert promise in found(policy, request_it, step=step)


def test_an_agent_that_does_not_demote_is_found_out() -> None:
    assert "does not come to an end" in found(ASYNC, False, duty=controls.never_demotes)


def test_a_primary_without_a_dead_man_is_found_out() -> None:
    with pytest.raises(Violation, match="take writes at the same time"):
        path(cut_off(apart=True), Rules(policy=ASYNC, dead_man=False))
    path(cut_off(apart=True), Rules(policy=ASYNC))


def by_mistake() -> World:
    """A page for a fail-over though the primary, which reaches nobody, takes writes."""
    start = cut_off(apart=True)
    assert start.page is not None
    return attrs.evolve(start, page=attrs.evolve(start.page, phase=Phase.DEMOTE, serial=2))


def test_what_the_pages_say_may_be_wrong_the_election_keeps_one_writable() -> None:
    """A coordinator that looks at nothing: only the election of the primary is between."""
    rules, last = Rules(policy=ASYNC, step=controls.reckless), "returns|expires|dead-man"
    path(by_mistake(), rules, last=last, steps=150)
    with pytest.raises(Violation, match="take writes at the same time"):
        path(by_mistake(), attrs.evolve(rules, elects=False), last=last, steps=150)
