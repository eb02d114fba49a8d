"""No world that can be reached breaks a promise; every broken machine is found out."""

from __future__ import annotations

from typing import Final

import pytest
from theatre import PATH, RECORD, node_of

from exploration.controls import CONTROLS, broken
from exploration.model import FAULTS, HAPPENINGS
from exploration.names import CZXID, SEQUENCE, Ranks, fresh, is_dense, mentions, rename
from exploration.promises import PROMISES
from exploration.search import Limits, Report, Violation, search
from exploration.transcript import tell
from zkelect.core import events as ev
from zkelect.core.events import Stamp
from zkelect.core.state import Phase, State
from zkelect.core.znodes import KAZOO

EVICTING: Final = frozenset(kind for kind in HAPPENINGS if kind.startswith("an operator"))

pytestmark = pytest.mark.timeout(900)  # against a hang: each takes a minute or so, alone


def explore(limits: Limits) -> Report:
    try:
        report = search(limits)
    except Violation as violation:
        pytest.fail(tell(violation, limits.candidates))
    print(report)
    return report


def test_two_candidates_with_every_fault() -> None:
    """With an operator who evicts, one more fault of any kind."""
    assert explore(Limits(worlds=100_000, faults=2)).happened >= EVICTING
    report = explore(Limits(worlds=200_000, kinds=frozenset(FAULTS) - EVICTING))
    assert report.worlds >= 200_000
    assert report.happened == {*HAPPENINGS} - EVICTING


def test_two_candidates_far_from_the_beginning() -> None:
    kinds = frozenset(FAULTS) - EVICTING
    assert explore(Limits(worlds=50_000, faults=1, campaigns=1, kinds=kinds)).depth >= 10


def test_two_candidates_and_an_operator_who_evicts_far_from_the_beginning() -> None:
    kinds = EVICTING | {"X's lease runs out", "X loses its link"}
    assert explore(Limits(worlds=50_000, campaigns=1, kinds=kinds)).depth >= 8


def test_three_candidates() -> None:
    assert explore(Limits(candidates=3, worlds=30_000, faults=2)).worlds >= 30_000


def test_one_candidate_in_all_worlds_there_are() -> None:
    """Two faults of any kinds, at any moments: none is left out."""
    assert explore(Limits(candidates=1, worlds=10**9, faults=2, campaigns=1)).finished


@pytest.mark.parametrize("name", [name for name in CONTROLS if name != "none"])
def test_a_broken_machine_is_found_out(name: str) -> None:
    control = CONTROLS[name]
    with broken(control), pytest.raises(Violation) as found:
        search(control.limits)
    assert found.value.promise == control.promise


def test_every_promise_can_be_broken() -> None:
    """But that tokens rise: it follows from "granted", and is judged to be safe."""
    assert {control.promise for control in CONTROLS.values()} - {""} == {*PROMISES} - {"tokens"}


def test_afterwards_the_machine_is_whole_again() -> None:
    with broken(CONTROLS["grant_without_lease"]), pytest.raises(Violation):
        search(Limits(worlds=1_000))
    explore(Limits(worlds=1_000))


def test_what_breaks_is_told_as_a_story() -> None:
    control = CONTROLS["trust_the_old_watches"]
    with broken(control):
        with pytest.raises(Violation) as found:
            search(control.limits)
        told = tell(found.value, 2).splitlines()
    assert told[0].startswith("# one leads: with all mended, exactly one")
    assert "  A -> Grant A2#0 with token 1" not in told
    assert "# from here on all is mended" in told
    assert "  B is waiting behind A2#0" in told
    assert told[-1] == "  one leads is broken"


# --- names ---------------------------------------------------------------------------------


def entry(name: str) -> object:
    return KAZOO.parse(node_of(name))


def test_worlds_that_differ_only_in_names_are_one() -> None:
    late = State(
        path=PATH,
        phase=Phase.WAITING,
        session_id=0x4109,
        attempt=7,
        uuid="A5",
        node=KAZOO.parse(node_of("A5#12")),
        czxid=30,
        ahead=(KAZOO.parse(node_of("B3#4")),),  # type: ignore[arg-type]  # both are entries
        record=RECORD,
    )
    mask = mentions(lambda visit: rename(late, 0, visit))
    early = rename(late, 0, Ranks(mask))
    assert not is_dense(mask)
    assert (early.session_id, early.attempt, early.uuid, early.czxid) == (0x4101, 0, "A", 1)
    assert early.node == entry("A#1")
    assert early.ahead == (entry("B#0"),)
    assert is_dense(mentions(lambda visit: rename(early, 0, visit)))


def test_an_answer_is_renamed_with_its_stamp() -> None:
    stamp = Stamp(session_id=0x4102, attempt=3)
    answer = ev.Created(stamp=stamp, node=node_of("A2#5"), czxid=8, owner=0x4102)
    mask = mentions(lambda visit: rename(answer, 0, visit))
    renamed = rename(answer, 0, Ranks(mask))
    assert renamed.stamp == Stamp(session_id=0x4101, attempt=0)
    assert (renamed.node, renamed.czxid, renamed.owner) == (node_of("A#0"), 1, 0x4101)
    assert (fresh(mask, SEQUENCE), fresh(mask, CZXID)) == (6, 8)
