"""The transition table, row by row.

Every scene meets every event. What is listed in EXPECTED comes to pass; what is not listed
changes nothing and asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import pytest
from attrs import evolve
from theatre import PATH, RECORD, node_of, passing, spell

from zkelect.core import events as ev
from zkelect.core.events import Event, Reason, Stamp
from zkelect.core.eviction import Eviction
from zkelect.core.handover import HandoverState
from zkelect.core.machine import TABLE, Machine, step
from zkelect.core.pause import Pause
from zkelect.core.record import Record
from zkelect.core.state import HEIRS, Phase, State
from zkelect.core.waiting import LONG_WALK
from zkelect.core.znodes import KAZOO, Entry
from zkelect.errors import RequestFailed, SequenceExhausted

OURS: Final = 0xB01
THEIRS: Final = 0xA01
NOW: Final = Stamp(session_id=OURS, attempt=3)
EARLIER: Final = Stamp(session_id=OURS, attempt=2)
RENEWED: Final = Record(uuid=RECORD.uuid, generation=2)
PAUSED: Final = evolve(RECORD, paused=Pause(by="K"))
EVICTING: Final = evolve(RECORD, evictions=(Eviction(id="1", node=node_of("B#2"), by="K"),))
FAILED: Final = RequestFailed(PATH, "get", "it went wrong")


def entry(name: str) -> Entry:
    found = KAZOO.parse(node_of(name))
    assert found is not None
    return found


# --- scenes: a candidate B of session b1, in its third try ---------------------------------

IDLE: Final = State(path=PATH, session_id=OURS, connected=True, campaign=1, uuid="B", attempt=3)
JOINING: Final = evolve(IDLE, phase=Phase.JOINING, sent=True)
RESTING: Final = evolve(JOINING, sent=False)
CREATED: Final = evolve(RESTING, node=entry("B#2"), czxid=20)
RECOVERING: Final = evolve(JOINING, lost=True)
SIFTING: Final = evolve(RECOVERING, suspects=frozenset({node_of("B#2")}))
FIRST: Final = evolve(CREATED, phase=Phase.WAITING, record=RECORD)
KEPT: Final = evolve(FIRST, record=PAUSED)
LOOKING: Final = evolve(FIRST, looking=True)
WAITING: Final = evolve(FIRST, ahead=(entry("A#1"),))
PREPARING: Final = evolve(FIRST, phase=Phase.PREPARING, term=NOW)
LEADING: Final = evolve(PREPARING, phase=Phase.LEADING)
DEPOSED: Final = evolve(LEADING, phase=Phase.LEAVING, reason=Reason.STALLED)
LEAVING: Final = evolve(DEPOSED, term=None, reason=None)
CANCELLED: Final = evolve(JOINING, phase=Phase.LEAVING)
UNSURE: Final = evolve(CANCELLED, lost=True)

SCENES: Final = {
    "idle": IDLE,
    "joining": JOINING,  # create and roll are under way
    "resting": RESTING,  # joining, with nothing under way but a rest or a parent being made
    "created": CREATED,  # joining: our znode is known, our place not yet
    "recovering": RECOVERING,  # joining: the reply to the create is lost, the barrier under way
    "sifting": SIFTING,  # joining: B#2 carries our uuid, whose is it?
    "first": FIRST,  # waiting for nothing but the lease
    "waiting": WAITING,  # behind A#1
    "preparing": PREPARING,
    "leading": LEADING,
    "deposed": DEPOSED,  # leaving: the body still runs
    "leaving": LEAVING,  # the withdrawal of B#2 is under way
    "cancelled": CANCELLED,  # leaving: the create is under way
    "unsure": UNSURE,  # leaving: the reply to the create is lost
}


# --- events, as the table below spells them ------------------------------------------------


def watched(name: str, owner: int) -> ev.Watched:
    return ev.Watched(stamp=NOW, node=node_of(name), czxid=20, owner=owner)


def rolled(*names: str, record: Record | None = RECORD, leased: bool = True) -> ev.Rolled:
    children = tuple(map(node_of, names))
    return ev.Rolled(stamp=NOW, children=children, record=record, leased=leased)


def recorded(record: Record | None, *, look: int = 0, leased: bool = False) -> ev.Recorded:
    return ev.Recorded(stamp=NOW, look=look, record=record, leased=leased)


def handed(leader: str, target: str, state: HandoverState) -> ev.HandoverRead:
    driven = passing(node_of(leader))
    handover = evolve(driven, target=node_of(target), state=state)
    return ev.HandoverRead(stamp=NOW, handover=handover)


def vanished(name: str, *, leased: bool = True) -> ev.Vanished:
    return ev.Vanished(stamp=NOW, node=node_of(name), leased=leased)


SPELT: Final[dict[str, Event]] = {
    "Campaigned": ev.Campaigned(campaign=2, uuid="B2"),
    "Cancelled": ev.Cancelled(campaign=1),
    "Cancelled, another campaign": ev.Cancelled(campaign=7),
    "SessionOpened": ev.SessionOpened(session_id=OURS + 1, uuid="B3"),
    "SessionSuspended": ev.SessionSuspended(),
    "SessionResumed": ev.SessionResumed(),
    "SessionExpired": ev.SessionExpired(),
    "Prepared": ev.Prepared(term=NOW),
    "TermEnded resigned": ev.TermEnded(term=NOW, reason=Reason.RESIGNED),
    "TermEnded stalled": ev.TermEnded(term=NOW, reason=Reason.STALLED),
    "Returned": ev.Returned(term=NOW),
    "GraceEnded": ev.GraceEnded(term=NOW),
    "Created": ev.Created(stamp=NOW, node=node_of("B#2"), czxid=20, owner=OURS),
    "Created, owned by another session": ev.Created(
        stamp=NOW, node=node_of("B#2"), czxid=20, owner=THEIRS
    ),
    "Created, number exhausted": ev.Created(
        stamp=NOW, node=node_of("B#2147483647"), czxid=20, owner=OURS
    ),
    "ParentMissing": ev.ParentMissing(stamp=NOW),
    "ParentMade": ev.ParentMade(stamp=NOW),
    "Refused": ev.Refused(stamp=NOW, error=FAILED),
    "Committed": ev.Committed(stamp=NOW),
    "Rolled A#1 B#2": rolled("A#1", "B#2"),
    "Rolled B#2": rolled("B#2"),
    "Rolled B#2, no lease": rolled("B#2", leased=False),
    "Rolled B#2 B#5": rolled("B#2", "B#5"),
    "Rolled A#1": rolled("A#1"),
    "Rolled A#1 B#2, number exhausted": rolled("A#1", "B#2", "K#2147483647"),
    "Rolled A#1 B#2, no record": rolled("A#1", "B#2", record=None),
    "Rolled B#2, paused": rolled("B#2", record=PAUSED),
    "Rolled B#2, evicted": rolled("B#2", record=EVICTING),
    "Rolled A#1 B#2, another record": rolled("A#1", "B#2", record=RENEWED),
    "Watched B#2": watched("B#2", OURS),
    "Watched B#2, owned by another session": watched("B#2", THEIRS),
    "Watched B#2, touched": evolve(watched("B#2", OURS), touched=True),
    "Watched A#1": watched("A#1", THEIRS),
    "Watched A#1, touched": evolve(watched("A#1", THEIRS), touched=True),
    "Vanished B#2": vanished("B#2"),
    "Vanished A#1": vanished("A#1"),
    "Vanished A#1, no lease": vanished("A#1", leased=False),
    "Changed B#2": ev.Changed(stamp=NOW, node=node_of("B#2")),
    "Changed A#1": ev.Changed(stamp=NOW, node=node_of("A#1")),
    "Deleted B#2": ev.Deleted(stamp=NOW, node=node_of("B#2")),
    "DeleteRefused B#2": ev.DeleteRefused(stamp=NOW, node=node_of("B#2"), error=FAILED),
    "Rested": ev.Rested(stamp=NOW),
    "Proven": ev.Proven(stamp=NOW, leased=True),
    "Proven, no lease": ev.Proven(stamp=NOW, leased=False),
    "RollDue": ev.RollDue(stamp=NOW),
    "RecordTouched": ev.RecordTouched(stamp=NOW),
    "Recorded, the same": recorded(evolve(RECORD, version=9), leased=True),
    "Recorded, the same, no lease": recorded(RECORD),
    "Recorded, paused": recorded(PAUSED, leased=True),
    "Recorded, evicted": recorded(EVICTING, leased=True),
    "Recorded, another": recorded(RENEWED),
    "Recorded, none": recorded(None),
    "Recorded, overtaken": recorded(RENEWED, look=-1),
    "HandoverRead, none": ev.HandoverRead(stamp=NOW, handover=None),
    "HandoverRead A#1 to C#3 asked": handed("A#1", "C#3", HandoverState.ASKED),
    "HandoverRead A#1 to C#3 driven": handed("A#1", "C#3", HandoverState.DRIVEN),
    "HandoverRead A#1 to B#2 driven": handed("A#1", "B#2", HandoverState.DRIVEN),
    "HandoverRead A#0 to C#3 driven": handed("A#0", "C#3", HandoverState.DRIVEN),
    "HandoverRead B#2 to C#3 asked": handed("B#2", "C#3", HandoverState.ASKED),
}

# event
#     scene      next phase   effects, in order
EXPECTED: Final = """
Campaigned
    idle       joining     Create, ReadRoll
    deposed    leaving
    leaving    leaving
    cancelled  leaving
    unsure     leaving
Cancelled
    joining    leaving
    resting    idle        Finish
    created    leaving     Withdraw B#2
    recovering leaving
    sifting    leaving     Delete B#2
    first      leaving     Withdraw B#2
    waiting    leaving     Withdraw B#2
Cancelled, another campaign
SessionOpened
    idle       idle
    joining    joining     Rest
    resting    joining     Rest
    created    joining     Rest
    recovering joining     Rest
    sifting    joining     Rest
    first      joining     Rest
    waiting    joining     Rest
    preparing  leaving     Void (expired), StartGrace
    leading    leaving     Void (expired), StartGrace
    deposed    leaving
    leaving    idle        Finish
    cancelled  idle        Finish
    unsure     idle        Finish
SessionSuspended
    idle       idle
    joining    joining
    resting    joining
    created    joining
    recovering joining
    sifting    joining
    first      waiting
    waiting    waiting
    preparing  preparing
    leading    leading
    deposed    leaving
    leaving    leaving
    cancelled  leaving
    unsure     leaving
SessionResumed
    idle       idle
    joining    joining     Commit
    resting    joining     Create, ReadRoll
    created    joining     ReadRoll
    recovering joining     Commit
    sifting    joining     Commit
    first      waiting     Watch B#2, ReadRecord
    waiting    waiting     Watch B#2, Watch A#1, ReadRecord
    preparing  preparing   Watch B#2
    leading    leading     Watch B#2
    deposed    leaving
    leaving    leaving     Withdraw B#2
    cancelled  leaving     Commit
    unsure     leaving     Commit
SessionExpired
    idle       idle
    joining    joining
    resting    joining
    created    joining
    recovering joining
    sifting    joining
    first      joining
    waiting    joining
    preparing  leaving     Void (expired), StartGrace
    leading    leaving     Void (expired), StartGrace
    deposed    leaving
    leaving    idle        Finish
    cancelled  idle        Finish
    unsure     idle        Finish
Prepared
    preparing  leading     Serve
TermEnded resigned
    preparing  leaving     Void (resigned)
    leading    leaving     Void (resigned)
TermEnded stalled
    preparing  leaving     Void (stalled), StartGrace
    leading    leaving     Void (stalled), StartGrace
Returned
    preparing  leaving     Void (resigned), Withdraw B#2
    leading    leaving     Void (resigned), Withdraw B#2
    deposed    leaving     Withdraw B#2
GraceEnded
    deposed    leaving     Withdraw B#2
Created
    idle       idle        Delete B#2
    joining    joining
    resting    joining
    recovering joining
    sifting    joining
    cancelled  leaving     Withdraw B#2
    unsure     leaving     Withdraw B#2
Created, owned by another session
    cancelled  leaving     Withdraw B#2
    unsure     leaving     Withdraw B#2
Created, number exhausted
    idle       idle        Delete B#2147483647
    joining    leaving     Fail SequenceExhausted, Withdraw B#2147483647
    resting    leaving     Fail SequenceExhausted, Withdraw B#2147483647
    created    leaving     Fail SequenceExhausted, Withdraw B#2147483647
    recovering leaving     Fail SequenceExhausted, Withdraw B#2147483647
    sifting    leaving     Fail SequenceExhausted, Delete B#2, Withdraw B#2147483647
    first      waiting     Delete B#2147483647
    waiting    waiting     Delete B#2147483647
    preparing  preparing   Delete B#2147483647
    leading    leading     Delete B#2147483647
    deposed    leaving     Delete B#2147483647
    leaving    leaving     Delete B#2147483647
    cancelled  leaving     Withdraw B#2147483647
    unsure     leaving     Withdraw B#2147483647
ParentMissing
    joining    joining     MakeParent
    recovering joining     MakeParent
    sifting    joining     MakeParent
    cancelled  idle        Finish
    unsure     idle        Finish
ParentMade
    resting    joining     Create, ReadRoll
Refused
    joining    idle        Fail RequestFailed, Finish
    resting    idle        Fail RequestFailed, Finish
    created    leaving     Fail RequestFailed, Withdraw B#2
    recovering leaving     Fail RequestFailed
    sifting    leaving     Fail RequestFailed, Delete B#2
    first      leaving     Fail RequestFailed, Withdraw B#2
    waiting    leaving     Fail RequestFailed, Withdraw B#2
    cancelled  idle        Finish
Committed
    joining    joining     ReadRoll
    recovering joining     ReadRoll
    sifting    joining     ReadRoll
    cancelled  leaving     ReadRoll
    unsure     leaving     ReadRoll
Rolled A#1 B#2
    joining    joining     Watch B#2
    created    waiting     Watch B#2, Watch A#1, ReadRecord
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    first      waiting     Watch A#1, ReadRecord
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Rolled B#2
    joining    joining     Watch B#2
    created    preparing   Watch B#2, Grant B#2 with token 20
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    first      preparing   Grant B#2 with token 20
    waiting    preparing   Grant B#2 with token 20
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Rolled B#2, no lease
    joining    joining     Watch B#2
    created    waiting     Watch B#2, ReadRecord
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    waiting    waiting
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Rolled B#2, paused
    joining    joining     Watch B#2
    created    waiting     Watch B#2, ReadRecord
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    first      waiting
    waiting    waiting
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Rolled B#2, evicted
    joining    joining     Watch B#2
    created    joining     Delete B#2, Create, ReadRoll
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    first      joining     Delete B#2, Create, ReadRoll
    waiting    joining     Delete B#2, Create, ReadRoll
    preparing  leaving     Void (evicted), StartGrace
    leading    leaving     Void (evicted), StartGrace
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Rolled B#2 B#5
    joining    joining     Watch B#2, Watch B#5
    created    preparing   Watch B#2, Delete B#5, Grant B#2 with token 20
    recovering joining     Watch B#2, Watch B#5
    sifting    joining     Watch B#2, Watch B#5
    first      preparing   Delete B#5, Grant B#2 with token 20
    waiting    preparing   Delete B#5, Grant B#2 with token 20
    preparing  preparing   Delete B#5
    leading    leading     Delete B#5
    cancelled  leaving     Delete B#2, Delete B#5
    unsure     leaving     Delete B#2, Delete B#5
Rolled A#1
    joining    joining     Create, ReadRoll
    created    joining     Create, ReadRoll
    recovering joining     Create, ReadRoll
    sifting    joining     Create, ReadRoll
    first      joining     Create, ReadRoll
    waiting    joining     Create, ReadRoll
    preparing  leaving     Void (evicted), StartGrace
    leading    leaving     Void (evicted), StartGrace
    cancelled  idle        Finish
    unsure     idle        Finish
Rolled A#1 B#2, number exhausted
    joining    joining     Watch B#2
    created    leaving     Fail SequenceExhausted, Withdraw B#2
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    first      leaving     Fail SequenceExhausted, Withdraw B#2
    waiting    leaving     Fail SequenceExhausted, Withdraw B#2
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Rolled A#1 B#2, no record
    joining    joining     Watch B#2
    created    joining     Delete B#2, MakeParent
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    first      joining     Delete B#2, Create, ReadRoll
    waiting    joining     Delete B#2, Create, ReadRoll
    preparing  leaving     Void (record-changed), StartGrace
    leading    leaving     Void (record-changed), StartGrace
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Rolled A#1 B#2, another record
    joining    joining     Watch B#2
    created    waiting     Watch B#2, Watch A#1, ReadRecord
    recovering joining     Watch B#2
    sifting    joining     Watch B#2
    first      joining     Delete B#2, Create, ReadRoll
    waiting    joining     Delete B#2, Create, ReadRoll
    preparing  leaving     Void (record-changed), StartGrace
    leading    leaving     Void (record-changed), StartGrace
    cancelled  leaving     Delete B#2
    unsure     leaving     Delete B#2
Watched B#2
    sifting    joining     ReadRoll
Watched B#2, owned by another session
    sifting    joining     Create, ReadRoll
    first      joining     Create, ReadRoll
    waiting    joining     Create, ReadRoll
    preparing  leaving     Void (evicted), StartGrace
    leading    leaving     Void (evicted), StartGrace
Watched B#2, touched
    sifting    joining     ReadRoll
    preparing  preparing   ReadHandover, ReadRecord
    leading    leading     ReadHandover, ReadRecord
Watched A#1
Watched A#1, touched
    waiting    waiting     ReadHandover
Vanished B#2
    created    joining     Create, ReadRoll
    sifting    joining     Create, ReadRoll
    first      joining     Create, ReadRoll
    waiting    joining     Create, ReadRoll
    preparing  leaving     Void (evicted), StartGrace
    leading    leaving     Void (evicted), StartGrace
    deposed    leaving
    leaving    idle        Finish
Vanished A#1
    waiting    preparing   Grant B#2 with token 20
Vanished A#1, no lease
    waiting    waiting
Changed B#2
    first      waiting     Watch B#2
    waiting    waiting     Watch B#2
    preparing  preparing   Watch B#2
    leading    leading     Watch B#2
Changed A#1
    waiting    waiting     Watch A#1, ReadRecord
Deleted B#2
    deposed    leaving
    leaving    idle        Finish
DeleteRefused B#2
    deposed    leaving     Fail RequestFailed
    leaving    idle        Fail RequestFailed, Finish
    cancelled  leaving     Fail RequestFailed
    unsure     leaving     Fail RequestFailed
Rested
    resting    joining     Create, ReadRoll
Proven
    first      preparing   Grant B#2 with token 20
Proven, no lease
RollDue
    first      waiting     ReadRoll
    waiting    waiting     ReadRoll
    preparing  preparing   ReadRoll
    leading    leading     ReadRoll
RecordTouched
    first      waiting     ReadRecord
    waiting    waiting     ReadRecord
    preparing  preparing   ReadRecord
    leading    leading     ReadRecord
Recorded, the same
    first      preparing   Grant B#2 with token 20
Recorded, the same, no lease
Recorded, paused
    first      waiting
    waiting    waiting
    preparing  preparing
    leading    leading
Recorded, overtaken
Recorded, evicted
    first      joining     Delete B#2, Create, ReadRoll
    waiting    joining     Delete B#2, Create, ReadRoll
    preparing  leaving     Void (evicted), StartGrace
    leading    leaving     Void (evicted), StartGrace
Recorded, another
    first      joining     Delete B#2, Create, ReadRoll
    waiting    joining     Delete B#2, Create, ReadRoll
    preparing  leaving     Void (record-changed), StartGrace
    leading    leaving     Void (record-changed), StartGrace
Recorded, none
    first      joining     Delete B#2, Create, ReadRoll
    waiting    joining     Delete B#2, Create, ReadRoll
    preparing  leaving     Void (record-changed), StartGrace
    leading    leaving     Void (record-changed), StartGrace
HandoverRead, none
HandoverRead A#1 to C#3 asked
HandoverRead A#1 to C#3 driven
    waiting    joining     Delete B#2, Create, ReadRoll
HandoverRead A#1 to B#2 driven
    waiting    waiting
HandoverRead A#0 to C#3 driven
HandoverRead B#2 to C#3 asked
    preparing  preparing   HandOver
    leading    leading     HandOver
"""


def expectations() -> dict[tuple[str, str], tuple[str, str]]:
    """Read EXPECTED: event and scene to next phase and effects."""
    found = {}
    event = ""
    for line in filter(str.strip, EXPECTED.splitlines()):
        if not line.startswith(" "):
            event = line
        else:
            scene, phase, effects = (*line.split(maxsplit=2), "")[:3]
            found[event, scene] = (phase, effects)
    return found


EXPECTATIONS: Final = expectations()


# --- the table -----------------------------------------------------------------------------


def outcome(scene: str, event: Event) -> tuple[State, State, str]:
    before = SCENES[scene]
    if isinstance(event, ev.SessionResumed):
        before = evolve(before, connected=False)
    after, effects = step(before, event)
    return before, after, ", ".join(map(spell, effects))


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("event", SPELT)
def test_the_table(event: str, scene: str) -> None:
    before, after, effects = outcome(scene, SPELT[event])
    if (event, scene) in EXPECTATIONS:
        assert (after.phase, effects) == EXPECTATIONS[event, scene]
        assert (before, "") != (after, effects), "it is listed, but nothing happens"
    else:
        assert (after, effects) == (before, "")


def test_only_known_events_and_scenes_are_expected() -> None:
    assert {event for event, _ in EXPECTATIONS} <= set(SPELT)
    assert {scene for _, scene in EXPECTATIONS} <= set(SCENES)


def test_every_event_has_a_row_and_every_row_all_phases() -> None:
    assert set(TABLE) == set(ev.EVENTS)
    assert {len(row) for row in TABLE.values()} == {len(Phase)}


def heirs(kind: type[Event]) -> Iterator[type[Event]]:
    for heir in kind.__subclasses__():
        yield heir
        yield from heirs(heir)


def test_every_event_class_is_in_events() -> None:
    assert {heir for heir in heirs(Event) if not heir.__subclasses__()} == set(ev.EVENTS)


def test_the_table_above_meets_every_event_in_every_phase() -> None:
    assert {type(event) for event in SPELT.values()} == set(ev.EVENTS)
    assert {scene.phase for scene in SCENES.values()} == set(Phase)


# --- what is stale -------------------------------------------------------------------------

ANSWERS: Final = [event for event in SPELT.values() if isinstance(event, ev.Answer)]
TERM_EVENTS: Final = [event for event in SPELT.values() if isinstance(event, ev.TermEvent)]


@pytest.mark.parametrize("stamp", [EARLIER, Stamp(session_id=THEIRS, attempt=3)], ids=str)
@pytest.mark.parametrize("scene", SCENES)
def test_a_stale_answer_changes_nothing(scene: str, stamp: Stamp) -> None:
    of_znodes = (ev.Created, ev.Deleted, ev.DeleteRefused)
    for event in ANSWERS:
        if not isinstance(event, of_znodes):
            assert step(SCENES[scene], evolve(event, stamp=stamp)) == (SCENES[scene], ())


@pytest.mark.parametrize("scene", SCENES)
def test_h24_a_znode_of_ours_that_comes_to_be_late_is_deleted(scene: str) -> None:
    late = ev.Created(stamp=EARLIER, node=node_of("B#1"), czxid=10, owner=OURS)
    after, effects = step(SCENES[scene], late)
    assert effects == (ev.Delete(stamp=NOW, node=node_of("B#1")),)
    assert after == evolve(SCENES[scene], doomed=frozenset({node_of("B#1")}))
    assert step(after, late) == (after, ()), "it is asked for once"


@pytest.mark.parametrize("scene", SCENES)
def test_a_late_znode_of_another_session_is_let_be(scene: str) -> None:
    late = ev.Created(stamp=EARLIER, node=node_of("B#1"), czxid=10, owner=THEIRS)
    assert step(SCENES[scene], late) == (SCENES[scene], ())


@pytest.mark.parametrize("scene", ["created", "sifting", "first", "leading", "leaving"])
def test_a_late_answer_about_the_znode_at_hand_dooms_nothing(scene: str) -> None:
    late = ev.Created(stamp=EARLIER, node=node_of("B#2"), czxid=20, owner=OURS)
    assert step(SCENES[scene], late) == (SCENES[scene], ())


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize(
    "answer",
    [
        ev.Deleted(stamp=EARLIER, node=node_of("B#1")),
        ev.DeleteRefused(stamp=EARLIER, node=node_of("B#1"), error=FAILED),
    ],
    ids=spell,
)
def test_what_became_of_a_doomed_znode_counts_whenever_it_is_told(
    scene: str, answer: ev.Answer
) -> None:
    before = evolve(SCENES[scene], doomed=frozenset({node_of("B#1")}))
    after, _ = step(before, answer)
    assert not after.doomed


@pytest.mark.parametrize("scene", SCENES)
def test_the_end_of_an_older_term_does_not_end_a_newer_one(scene: str) -> None:
    for event in TERM_EVENTS:
        assert step(SCENES[scene], evolve(event, term=EARLIER)) == (SCENES[scene], ())


# --- what no table shows -------------------------------------------------------------------


def test_a_step_is_determined_by_state_and_event_alone() -> None:
    for scene in SCENES:
        for event in SPELT.values():
            assert outcome(scene, event) == outcome(scene, event)


def test_states_events_and_effects_are_frozen() -> None:
    _, (effect, *_) = step(IDLE, SPELT["Campaigned"])
    for value, field in ((IDLE, "phase"), (SPELT["Created"], "node"), (effect, "stamp")):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(value, field, None)


def test_a_machine_keeps_the_state_that_step_returns() -> None:
    machine = Machine(IDLE)
    effects = machine.step(SPELT["Campaigned"])
    assert (machine.state, effects) == step(IDLE, SPELT["Campaigned"])


@pytest.mark.parametrize("scene", SCENES)
def test_nothing_is_asked_of_the_servers_while_the_link_is_down(scene: str) -> None:
    before = evolve(SCENES[scene], connected=False, doomed=frozenset({node_of("B#1")}))
    for event in SPELT.values():
        after, effects = step(before, event)
        asked = [effect for effect in effects if isinstance(effect, ev.Request)]
        assert after.connected or not asked


def test_a_create_that_was_not_sent_is_not_waited_for() -> None:
    after, _ = step(evolve(IDLE, connected=False), SPELT["Campaigned"])
    assert not after.sent


@pytest.mark.parametrize(
    "before",
    [evolve(FIRST, connected=False), evolve(FIRST, record=None), WAITING, KEPT, LOOKING],
    ids=["no link", "no record", "somebody ahead", "paused", "a change that is not read"],
)
def test_no_grant_when_anything_is_wanting(before: State) -> None:
    assert step(before, SPELT["Proven"]) == (before, ())


@pytest.mark.parametrize("before", [KEPT, LOOKING])
def test_who_was_kept_is_granted_when_the_record_is_read(before: State) -> None:
    for record, phase in ((PAUSED, Phase.WAITING), (RECORD, Phase.PREPARING)):
        after, _ = step(before, recorded(record, leased=True))
        assert (after.phase, after.record, after.looking) == (phase, record, False)


def test_a_read_that_a_later_one_has_overtaken_says_nothing() -> None:
    state, (first,) = step(FIRST, SPELT["RecordTouched"])
    state, (second,) = step(state, SPELT["RecordTouched"])
    assert isinstance(first, ev.ReadRecord)
    assert isinstance(second, ev.ReadRecord)
    assert step(state, recorded(RECORD, look=first.look, leased=True)) == (state, ())
    after, _ = step(state, recorded(PAUSED, look=second.look, leased=True))
    assert (after.kept_by, after.looking) == (PAUSED.paused, False)


@pytest.mark.parametrize(
    ("event", "asked"),
    [
        (vanished("A#1"), "Watch A#0, ReadRecord"),  # behind the watch, so that it is the newer
        (vanished("A#0"), "ReadRecord"),
        (rolled("A#1", "B#2"), "ReadRecord"),
    ],
    ids=spell,
)
def test_who_may_lead_next_reads_the_record_once_more_and_watches_it(
    event: Event, asked: str
) -> None:
    third = evolve(WAITING, ahead=(entry("A#0"), entry("A#1")))
    after, effects = step(third, event)
    assert (after.looking, ", ".join(map(spell, effects))) == (True, asked)
    assert not evolve(third, looking=False).next


@pytest.mark.parametrize("event", ["Recorded, evicted", "Rolled B#2, evicted"])
def test_who_is_asked_to_go_waits_for_its_body_before_its_znode_goes(event: str) -> None:
    after, _ = step(LEADING, SPELT[event])
    assert (after.node, after.term) == (LEADING.node, NOW)
    _, (withdrawal,) = step(after, SPELT["Returned"])
    assert withdrawal == ev.Withdraw(stamp=NOW, node=node_of("B#2"), reason=Reason.EVICTED)


@pytest.mark.parametrize("scene", ["first", "waiting", "preparing", "leading"])
def test_that_somebody_else_is_asked_to_go_changes_nothing(scene: str) -> None:
    other = evolve(EVICTING, evictions=(Eviction(id="1", node=node_of("B#3")),))
    told, known = (step(SCENES[scene], recorded(record)) for record in (other, RECORD))
    assert told == (evolve(known[0], record=other), known[1])


def test_the_roll_of_a_paused_election_keeps_who_is_first() -> None:
    after, _ = step(FIRST, SPELT["Rolled B#2, paused"])
    assert after.kept_by == PAUSED.paused
    assert step(after, SPELT["Rolled B#2"])[0].phase is Phase.PREPARING


def test_a_grant_carries_the_record_that_was_read_behind_the_create() -> None:
    record = evolve(RENEWED, version=4)
    after, effects = step(CREATED, rolled("B#2", record=record))
    (grant,) = [effect for effect in effects if isinstance(effect, ev.Grant)]
    assert grant == ev.Grant(stamp=NOW, node=node_of("B#2"), czxid=20, record=record)
    assert grant.record.version == 4
    assert after.term == NOW


def test_a_probe_that_found_only_the_version_changed_brings_the_new_one() -> None:
    for before in (WAITING, LEADING):
        after, _ = step(before, SPELT["Recorded, the same"])
        assert after.record is not None
        assert after.record.version == 9


def test_a_long_walk_reads_the_roll_again() -> None:
    queue = tuple(entry(f"A#{number}") for number in range(LONG_WALK + 2))
    state = evolve(FIRST, ahead=queue, node=entry("B#20"))
    asked = []
    for gone in reversed(queue[2:]):
        state, effects = step(state, ev.Vanished(stamp=NOW, node=gone.node))
        asked.append([type(effect) for effect in effects])
    assert asked == [[ev.Watch]] * (LONG_WALK - 1) + [[ev.Watch, ev.ReadRoll]]


def test_one_who_vanishes_in_the_middle_of_the_queue_moves_no_watch() -> None:
    before = evolve(WAITING, ahead=(entry("A#0"), entry("K#0"), entry("A#1")))
    after, effects = step(before, vanished("A#0"))
    assert (after.ahead, effects) == ((entry("K#0"), entry("A#1")), ())


def test_a_new_roll_watches_only_a_new_predecessor() -> None:
    after, effects = step(WAITING, rolled("A#0", "A#1", "B#2"))
    assert (len(after.ahead), effects) == (2, ())


@pytest.mark.parametrize(("ahead", "warm"), [(0, True), (HEIRS, True), (HEIRS + 1, False)])
def test_the_first_and_the_heirs_keep_their_lease_warm(ahead: int, warm: bool) -> None:
    queue = tuple(entry(f"A#{number}") for number in range(ahead))
    assert evolve(FIRST, ahead=queue).warm is warm
    assert LEADING.warm
    assert not JOINING.warm


def test_of_several_adopted_the_lowest_stays_and_the_others_go() -> None:
    names = frozenset(map(node_of, ("B#2", "B#4", "B#5")))
    state, _ = step(evolve(SIFTING, suspects=names), watched("B#5", OURS))
    state, _ = step(state, watched("B#4", OURS))
    state, effects = step(state, watched("B#2", THEIRS))
    assert state.node == entry("B#4")
    assert [spell(effect) for effect in effects] == ["Delete B#5", "ReadRoll"]


def test_a_doomed_znode_is_never_adopted() -> None:
    before = evolve(JOINING, doomed=frozenset({node_of("B#2")}))
    after, effects = step(before, rolled("B#2"))
    assert [spell(effect) for effect in effects] == ["Create", "ReadRoll"]
    assert after.doomed == before.doomed


def test_a_number_given_again_by_a_parent_made_anew_is_not_doomed() -> None:
    before = evolve(JOINING, doomed=frozenset({node_of("B#2")}))
    after, _ = step(before, SPELT["Created"])
    assert (after.node, after.doomed) == (entry("B#2"), frozenset())


@pytest.mark.parametrize("scene", ["idle", "resting", "created", "waiting", "leading", "leaving"])
def test_the_deletion_of_a_stray_is_asked_for_again_on_every_new_link(scene: str) -> None:
    before = evolve(SCENES[scene], connected=False, doomed=frozenset({node_of("B#1")}))
    _, effects = step(before, ev.SessionResumed())
    assert "Delete B#1" in map(spell, effects)


def test_strays_go_even_when_the_numbers_are_exhausted() -> None:
    _, effects = step(CREATED, rolled("B#1", "B#2", "K#2147483647"))
    assert [spell(effect) for effect in effects] == [
        "Delete B#1",
        "Fail SequenceExhausted",
        "Withdraw B#2",
    ]


# --- leaving -------------------------------------------------------------------------------


def steps(state: State, *events: Event) -> tuple[State, list[str]]:
    done: list[str] = []
    for event in events:
        state, effects = step(state, event)
        done += map(spell, effects)
    return state, done


def test_the_next_campaign_begins_when_the_last_one_has_left() -> None:
    campaign = ev.Campaigned(campaign=2, uuid="B2")
    state, effects = step(LEAVING, campaign)
    state, effects = step(state, SPELT["Deleted B#2"])
    assert effects == (
        ev.Finish(stamp=NOW, campaign=1),
        ev.Create(stamp=evolve(NOW, attempt=4), uuid="B2"),
        ev.ReadRoll(stamp=evolve(NOW, attempt=4)),
    )
    assert (state.campaign, state.again) == (2, None)


def test_a_campaign_cancelled_before_it_began_is_over_when_the_last_one_has_left() -> None:
    state, done = steps(LEAVING, ev.Campaigned(campaign=2, uuid="B2"), ev.Cancelled(campaign=2))
    assert (state.phase, done) == (Phase.LEAVING, [])
    state, effects = step(state, SPELT["Deleted B#2"])
    assert effects == (ev.Finish(stamp=NOW, campaign=2),)
    assert state.phase is Phase.IDLE


def test_a_deletion_refused_fails_the_campaign_that_is_leaving_not_the_next() -> None:
    before = evolve(LEAVING, again=(2, "B2"))
    _, effects = step(before, SPELT["DeleteRefused B#2"])
    (failed,) = [effect for effect in effects if isinstance(effect, ev.Fail)]
    assert failed.campaign == 1


def test_h15_the_znode_of_a_stalled_leader_goes_with_its_grace_and_once() -> None:
    state, done = steps(DEPOSED, SPELT["GraceEnded"], SPELT["Returned"], SPELT["Deleted B#2"])
    assert done == ["Withdraw B#2", "Finish"]
    assert state.phase is Phase.IDLE


def test_h15_idle_only_when_the_body_has_returned() -> None:
    state, done = steps(DEPOSED, SPELT["GraceEnded"], SPELT["Deleted B#2"])
    assert (state.phase, done) == (Phase.LEAVING, ["Withdraw B#2"])
    assert steps(state, SPELT["Returned"])[1] == ["Finish"]


def test_a_grace_that_ends_while_the_link_is_down_is_remembered() -> None:
    state, done = steps(
        DEPOSED, ev.SessionSuspended(), SPELT["GraceEnded"], ev.SessionResumed(), SPELT["Returned"]
    )
    assert done == ["Withdraw B#2"]
    assert state.phase is Phase.LEAVING


def test_h12_each_way_of_ending_voids_once() -> None:
    for before in (PREPARING, LEADING):
        for first in SPELT.values():
            done = steps(before, first, *SPELT.values())[1]
            assert sum(effect.startswith("Void") for effect in done) == 1


def test_the_end_of_a_term_is_written_with_its_reason() -> None:
    _, effects = step(DEPOSED, SPELT["Returned"])
    assert effects == (ev.Withdraw(stamp=NOW, node=node_of("B#2"), reason=Reason.STALLED),)
    _, effects = step(evolve(FIRST, reason=Reason.STALLED), SPELT["Cancelled"])
    assert effects == (ev.Withdraw(stamp=NOW, node=node_of("B#2"), reason=None),)


def test_h34_the_error_names_path_and_znode() -> None:
    _, effects = step(JOINING, SPELT["Created, number exhausted"])
    (failed,) = [effect for effect in effects if isinstance(effect, ev.Fail)]
    assert isinstance(failed.error, SequenceExhausted)
    assert (failed.error.path, failed.error.node) == (PATH, node_of("B#2147483647"))
