"""Priorities: who waits lets those of a higher one go first, and no token ever falls."""

from __future__ import annotations

import random
from itertools import count, pairwise
from typing import Final

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from theatre import Candidate, Ensemble, passing

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event
from zkelect.core.pause import Pause
from zkelect.core.record import Record
from zkelect.core.state import Phase, State
from zkelect.core.znodes import HIGHEST_PRIORITY, KAZOO, Entry, Roll, is_ours, ranked

UUID: Final = "0123456789ab80008123456789abcdef"
KAZOOS: Final = "0123456789ab4def8123456789abcdef"

Priorities = st.lists(st.sampled_from([0, 1, 2, HIGHEST_PRIORITY]), min_size=2, max_size=7)


class Ranked(Candidate):
    """A candidate whose uuids are real ones, so that they tell its priority."""

    made = count()

    def __init__(self, queue: Queue, name: str, priority: int, *, yields: bool) -> None:
        super().__init__(name, queue.ensemble, queue.note)
        self.priority = priority
        self.machine.state = State(path=self.state.path, priority=priority, yields=yields)

    def _uuid(self) -> str:
        return f"{next(self.made):012x}{UUID[12:]}"

    @property
    def moves(self) -> list[object]:
        possible = [
            (self.news, self.hear_news),
            (self.replies, self.hear_reply),
            (self.position < self.ensemble.zxid, self.advance),
            (self.requests, self.serve),
        ]
        return [move for can, move in possible if can]


class Queue:
    """Candidates who joined in this order, and the steps back that they made.

    :param seed: of the order in which messages are let through.
    """

    def __init__(self, *priorities: int, seed: int = 0, yields: bool = False) -> None:
        self.ensemble = Ensemble()
        self.chance = random.Random(seed)
        self.back: list[tuple[int, list[int]]] = []
        self.tokens: list[int] = []
        self.all = [
            Ranked(self, chr(ord("A") + i), each, yields=yields)
            for i, each in enumerate(priorities)
        ]
        for who in self.all:
            who.connect()
            who.campaign()
            self.settle()

    def note(self, who: Candidate, _: Event, effects: tuple[Effect, ...], before: State) -> None:
        for effect in effects:
            if isinstance(effect, ev.Grant):
                self.tokens.append(effect.czxid)
            if isinstance(effect, ev.Delete) and before.is_own(effect.node):
                assert before.node is not None
                self.back.append((before.node.priority, self.behind(before.node)))

    def behind(self, own: Entry) -> list[int]:
        return [entry.priority for entry in self.roll.behind(own)]

    @property
    def roll(self) -> Roll:
        return KAZOO.read(self.ensemble.tree.nodes)

    @property
    def order(self) -> list[int]:
        """The priorities in the queue, the leader's first."""
        return [entry.priority for entry in self.roll.entries]

    @property
    def leader(self) -> Ranked:
        (leader,) = (who for who in self.all if who.state.leads)
        return leader

    def settle(self) -> None:
        while moves := [move for who in self.all for move in who.moves]:
            self.chance.choice(moves)()  # type: ignore[operator]  # each is a move

    def reread(self) -> None:
        """Everybody's slow re-read comes, in any order; again and again until nothing moves."""
        for _ in range(50):
            steps = len(self.back)
            for who in self.chance.sample(self.all, len(self.all)):
                if who.state.phase in (Phase.WAITING, Phase.PREPARING):
                    who.reread()
            self.settle()
            if len(self.back) == steps:
                return
        raise AssertionError(f"it does not end: {self.back}")


# --- who leads next ----------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(Priorities, st.integers(0, 2**32))
def test_leaders_follow_in_the_order_of_their_priorities(priorities: list[int], seed: int) -> None:
    """Whatever order messages come in; the first to join leads, nobody removes it."""
    queue = Queue(*priorities, seed=seed)
    led = []
    while queue.ensemble.tree.nodes:
        leader = queue.leader
        queue.reread()
        assert queue.leader is leader
        led.append(leader.priority)
        leader.return_body()
        queue.settle()
    assert led[0] == priorities[0]
    assert led[1:] == sorted(priorities[1:], reverse=True)
    assert all(older < newer for older, newer in pairwise(queue.tokens))


@settings(max_examples=200, deadline=None)
@given(Priorities, st.integers(0, 2**32))
def test_only_a_lower_one_steps_back_and_each_step_brings_the_highest_forward(
    priorities: list[int], seed: int
) -> None:
    queue = Queue(*priorities, seed=seed)
    queue.reread()
    waiting = priorities[1:]
    for own, behind in queue.back:
        assert own < max(waiting), f"{own} stepped back with {behind} behind it"
    assert len(queue.back) <= waiting.index(max(waiting))
    assert queue.order[1] == max(waiting)


def test_equals_stay_in_the_order_in_which_they_came() -> None:
    queue = Queue(0, 5, 5, 5)
    queue.reread()
    assert queue.back == []


def test_without_priorities_nothing_more_is_asked() -> None:
    plain = [who.performed for who in Queue(0, 0, 0, 0).all]
    again = [who.performed for who in Queue(3, 2, 1, 0).all]  # nobody behind is above anybody
    assert [list(map(type, done)) for done in plain] == [list(map(type, done)) for done in again]


def test_who_becomes_the_heir_looks_at_once_if_it_has_seen_somebody_above() -> None:
    queue = Queue(0, 0, 0, 7)
    for who in queue.all[1:3]:
        who.feed(ev.RollDue(stamp=who.state.stamp))
    queue.settle()
    assert queue.order == [0, 7, 0, 0]
    assert len(queue.back) == 2


def test_who_becomes_the_heir_and_has_seen_nobody_above_waits_for_its_next_look() -> None:
    queue = Queue(0, 0, 0, 7)
    queue.all[1].reread()
    queue.settle()
    assert queue.order == [0, 0, 7, 0]
    assert [type(what) for what in queue.all[2].performed].count(ev.ReadRoll) == 1


def test_a_fail_over_is_not_delayed() -> None:
    queue = Queue(0, 0, 7)
    queue.leader.return_body()
    queue.settle()
    assert queue.leader is queue.all[1]
    queue.reread()
    assert queue.leader is queue.all[1]


def test_a_roll_that_says_we_are_gone_is_no_reason_to_step_back() -> None:
    queue = Queue(0, 0, 7)
    heir = queue.all[1]
    nodes = [node for node in queue.ensemble.tree.nodes if not heir.state.is_own(node)]
    queue.ensemble.remove(*(node for node in queue.ensemble.tree.nodes if heir.state.is_own(node)))
    heir.feed(ev.Rolled(stamp=heir.state.stamp, children=tuple(nodes), record=heir.state.record))
    queue.settle()
    assert queue.back == []
    assert queue.order == [0, 7, 0]


def test_h49_with_a_peer_of_another_library_in_the_queue_nobody_steps_back() -> None:
    """It would not step back itself, and who did would have gone behind it for nothing."""
    queue = Queue(0, 0, 7)
    queue.ensemble.make(KAZOO.prefix(KAZOOS), 0x4B01)
    queue.settle()  # a server that lags does not show it yet
    queue.reread()
    assert queue.back == []
    assert queue.order == [0, 0, 7, 0]


def test_who_steps_back_deletes_its_znode_before_it_makes_a_new_one() -> None:
    """On one connection: so it never stands twice, and what is deleted is not what is made."""
    queue = Queue(0, 0, 0)
    heir, asked = queue.all[1], len(queue.all[1].performed)
    own = heir.state.node
    assert own is not None
    hear_of_it(heir, "Z")
    assert heir.performed[asked:] == [
        ev.Delete(stamp=evolve(heir.state.stamp, attempt=heir.state.attempt - 1), node=own.node),
        ev.Create(stamp=heir.state.stamp, uuid=heir.state.uuid),
        ev.ReadRoll(stamp=heir.state.stamp),
    ]


# --- a leader that wants to know ------------------------------------------------------------


def outranked(queue: Queue) -> list[Effect]:
    return [what for what in queue.leader.performed if isinstance(what, ev.Outranked)]


def test_a_leader_hears_of_an_heir_of_a_higher_priority_at_its_slow_re_read() -> None:
    queue = Queue(3, 4, yields=True)
    assert outranked(queue) == []
    queue.leader.reread()
    queue.settle()
    assert outranked(queue) == [ev.Outranked(stamp=queue.leader.state.stamp)]


@pytest.mark.parametrize("priorities", [(3, 3), (3, 2), (3,), (3, 0, 2)])
def test_it_hears_nothing_of_an_heir_that_is_not_above_it(priorities: tuple[int, ...]) -> None:
    queue = Queue(*priorities, yields=True)
    queue.reread()
    assert outranked(queue) == []


def test_only_the_heir_counts_once_it_is_the_highest_of_those_who_wait() -> None:
    queue = Queue(3, 4, 5, yields=True)
    leader = queue.leader
    leader.reread()
    leader.serve()
    leader.hear_reply()
    assert outranked(queue) == []  # 4 steps back first
    queue.reread()
    assert queue.order == [3, 5, 4]
    assert outranked(queue)


def test_it_stays_while_the_election_is_paused_for_nobody_would_follow() -> None:
    queue = Queue(3, 4, yields=True)
    leader = queue.leader
    assert leader.state.record is not None
    paused = Record(uuid=leader.state.record.uuid, paused=Pause(by="K"))
    leader.feed(ev.Recorded(stamp=leader.state.stamp, look=leader.state.look, record=paused))
    leader.reread()
    queue.settle()
    assert outranked(queue) == []


def test_who_does_not_ask_for_it_hears_nothing() -> None:
    queue = Queue(3, 4)
    queue.reread()
    assert outranked(queue) == []


# --- a switchover -------------------------------------------------------------------------------


def hear_of_it(who: Candidate, target: str) -> None:
    """Let a candidate read that whoever is just ahead of it hands over to that znode."""
    handover = evolve(passing(who.state.ahead[-1].node), target=target)
    who.feed(ev.HandoverRead(stamp=who.state.stamp, handover=handover))


def test_whom_the_leader_hands_over_to_does_not_step_back_for_a_higher_priority() -> None:
    queue = Queue(0, 1, 7)
    heir = queue.all[1]
    assert heir.state.node is not None
    hear_of_it(heir, heir.state.node.node)
    queue.reread()
    assert queue.back == []
    heir.feed(ev.HandoverRead(stamp=heir.state.stamp, handover=None))  # it is withdrawn
    queue.reread()
    assert queue.order == [0, 7, 1]


def test_who_becomes_the_heir_reads_the_page_before_it_looks_who_is_behind() -> None:
    """So that it does not step back before it has heard that it is the one."""
    queue = Queue(0, 0, 0, 7)
    chosen = queue.all[2]
    chosen.reread()
    queue.settle()
    assert chosen.state.outranked
    leader = chosen.state.ahead[0].node
    chosen.feed(ev.Vanished(stamp=chosen.state.stamp, node=chosen.state.ahead[-1].node))
    asked = len(chosen.performed)
    chosen.feed(ev.Watched(stamp=chosen.state.stamp, node=leader, czxid=1, owner=1, touched=True))
    assert [type(what) for what in chosen.performed[asked:]] == [ev.ReadHandover]


def test_who_steps_back_twice_stands_last_with_one_znode() -> None:
    queue = Queue(0, 0, 0)
    heir = queue.all[1]
    for _ in range(2):
        hear_of_it(heir, "Z")
        queue.settle()
    assert len(queue.ensemble.tree.nodes) == 3
    assert heir.state.node == queue.roll.entries[-1]


# --- the uuid ---------------------------------------------------------------------------------


@given(st.integers(0, HIGHEST_PRIORITY), st.integers(0, HIGHEST_PRIORITY))
def test_the_uuid_tells_the_latest_priority_and_stays_ours(first: int, second: int) -> None:
    uuid = ranked(ranked(UUID, first), second)
    assert is_ours(uuid)
    assert len(uuid) == 32
    assert uuid[:13] + uuid[16:] == UUID[:13] + UUID[16:]
    assert Entry(node="n", sequence=0, uuid=uuid).priority == second


def test_peers_of_other_libraries_have_no_priority() -> None:
    assert Entry(node="n", sequence=0, uuid=KAZOOS).priority == 0


def test_of_several_with_the_highest_priority_the_first_is_preferred() -> None:
    roll = KAZOO.read(
        KAZOO.prefix(ranked(UUID, priority)) + f"{number:010d}"
        for number, priority in enumerate([1, 2, 3, 3])
    )
    assert roll.preferred_behind(roll.entries[0]) == roll.entries[2]
    assert roll.preferred_behind(roll.entries[2]) is None
    assert roll.preferred_behind(roll.entries[3]) is None
    assert roll.behind(roll.entries[2]) == roll.entries[3:]
