"""Cases that must come out right, with the real session, lease and election, in memory."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable
from functools import partial

import pytest
from contract.memory import Memory
from contract.world import SESSION_TIMEOUT, Stander, ask, candidate

import zkelect
from zkelect.core.state import Phase
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.conversation import REPLIES, REQUESTS
from zkelect.testing.fake_machine import Move

Stand = Callable[[str], Stander]
CYCLES = 600
ELECTION = f"{Memory.path}/election"


def candidates(fake: FakeEnsemble) -> list[str]:
    return fake.children(ELECTION)


def created(fake: FakeEnsemble) -> int:
    """Return how many candidates were ever made."""
    parent = fake.znode(ELECTION)
    return 0 if parent is None else parent.creations


def has_terms(stander: Stander, count: int) -> bool:
    return len(stander.terms) == count


def wait(world: Memory, condition: Callable[[], object]) -> None:
    world.until(condition, "it came out right")


def assert_one_queue(fake: FakeEnsemble, *standing: Stander) -> None:
    """Each stands with one znode, of its present session; the first one leads."""
    owners = [
        znode.owner for node in candidates(fake) if (znode := fake.znode(f"{ELECTION}/{node}"))
    ]
    assert sorted(owners) == sorted(each.session.session_id or 0 for each in standing)
    leading = [each for each in standing if each.phase is Phase.LEADING]
    assert len(leading) == 1
    assert leading[0].session.session_id == owners[0]


# --- losing leadership --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100))
def test_h05_a_cut_leader_ends_before_the_next_one_begins(seed: int) -> None:
    """The moment of the cut, and the order of everything, are drawn; the end comes first."""
    chance = random.Random(seed)
    world = Memory(chance.choice, servers=3)
    a, b = Stander(world, "a"), Stander(world, "b")
    with a.standing(world):
        wait(world, lambda: a.terms)
        with b.standing(world):
            world.fake.advance(chance.uniform(0.0, 2 * SESSION_TIMEOUT), chance.choice)
            ways = chance.choice([(), (REQUESTS,), (REPLIES,)])
            world.cut(a.session, *ways)
            first = a.terms[0]
            ended = None
            while not b.terms:
                assert not (b.terms and first.reason is None)
                ended = ended or (first.reason and world.fake.clock.now)
                world.fake.advance(0.02, chance.choice)
            assert ended is not None
            assert first.reason == "lapsed"
            assert b.terms[0].token > first.token


def test_h06_h07_a_leader_whose_server_lost_the_quorum_lapses_while_connected() -> None:
    world = Memory(servers=3)
    a = Stander(world, "a")
    with a.standing(world):
        wait(world, lambda: a.terms)
        world.fake.hold(a.session, Move.DIAL)
        world.fake.servers[0].isolate()
        session_id = a.session.session_id
        world.fake.elapse(SESSION_TIMEOUT)
        assert a.session.connected
        with pytest.raises(zkelect.LeadershipLost):
            a.terms[0].check()
        assert a.session.session_id == session_id
        world.fake.mend()
        wait(world, lambda: len(a.terms) == 2)


def test_h10_a_session_swapped_without_a_word_is_a_new_one(
    world: Memory, fake: FakeEnsemble, stand: Stand
) -> None:
    a, b = stand("a"), stand("b")
    old = a.session.session_id
    fake.swap(a.session)
    wait(world, lambda: len(a.told) == 2)
    assert a.told == ["elected", "deposed (expired)"]
    assert "LOST" not in a.told
    assert a.session.session_id not in (None, old)
    wait(world, lambda: b.terms)
    fake.advance(SESSION_TIMEOUT)
    assert_one_queue(fake, a, b)
    assert b.terms[0].token > a.terms[0].token


def test_h18_suspended_and_back_twenty_times_keeps_token_and_places(
    fake: FakeEnsemble, world: Memory, stand: Stand
) -> None:
    a, b = stand("a"), stand("b")
    queue, token = candidates(fake), a.terms[0].token
    for n in range(20):
        world.reconnect((a, b)[n % 2].session)
        assert a.terms[0].check() == token
    assert candidates(fake) == queue
    assert (a.told, b.told) == (["elected"], [])


def test_h17_a_machine_that_slept_does_not_lead(
    world: Memory, fake: FakeEnsemble, stand: Stand
) -> None:
    a = stand("a")
    fake.sleep(a.session, 0.2)
    with pytest.raises(zkelect.LeadershipLost) as lost:
        a.terms[0].check()
    assert lost.value.reason == "machine-suspended"
    wait(world, lambda: len(a.terms) == 2)


def test_h02_a_paused_leader_knows_when_it_wakes(
    world: Memory, fake: FakeEnsemble, stand: Stand
) -> None:
    a, b = stand("a"), stand("b")
    fake.pause(a.session)
    fake.advance(3 * SESSION_TIMEOUT)
    assert b.terms
    with pytest.raises(zkelect.LeadershipLost):
        a.terms[0].check()
    fake.resume(a.session)
    wait(world, lambda: a.phase is Phase.WAITING)
    assert a.told == ["elected", "deposed (lapsed)"]


def test_h15_the_znode_stays_until_the_body_returns(world: Memory, fake: FakeEnsemble) -> None:
    """Here the body ends with ``deposed``, which runs as a step of its own."""
    a = Stander(world, "a")
    with a.standing(world):
        wait(world, lambda: a.terms)
        fake.hold(a.session, Move.CALL)
        a.election.resign()
        for _ in range(3):
            fake.advance(SESSION_TIMEOUT)
            world.reconnect(a.session)
        assert a.terms[0].reason == "resigned"
        assert len(candidates(fake)) == 1
        fake.release(a.session)
        fake.settle()
        assert a.told == ["elected", "deposed (resigned)"]
        assert candidates(fake) == []


@pytest.mark.parametrize("seed", range(40))
def test_h05_the_lease_counts_that_news_can_die_with_a_server(seed: int) -> None:
    """A follower dies right after an answer: the ensemble's leader never hears who asked it."""
    chance = random.Random(seed)
    fake = FakeEnsemble(3, tick_time=2.0)
    session = fake.connect(session_timeout=4.0, tick_time=2.0, server=1)
    election = zkelect.Election(session, ELECTION.removeprefix(Memory.path))
    election.start()
    fake.advance(chance.uniform(2.0, 10.0))
    session_id, _ = session.credentials()
    assert election.phase is Phase.LEADING
    fake.cut(session)
    fake.servers[1].stop()
    proven = session.lease.deadline
    while fake.alive(session_id):
        fake.elapse(0.01)
    assert proven <= fake.clock.now
    fake.close()


# --- becoming leader ----------------------------------------------------------------------------


def test_h19_the_smallest_timeout_of_the_sessions_life_counts() -> None:
    """Made at a server that grants 3 s, moved to one that grants 10 s, and another one leads."""
    fake = FakeEnsemble(3, tick_time=0.5)
    fake.create(Memory.path)
    fake.servers[0].limits = (1.0, 3.0)
    session = fake.connect(session_timeout=10.0, tick_time=0.5)
    election = zkelect.Election(session, ELECTION)
    election.start()
    fake.advance(1.0)
    assert session.timeout == 3.0
    fake.move(session, server=1)
    fake.advance(5.0)
    assert session.timeout == 3.0
    session_id, began = session.credentials()[0], fake.clock.now
    fake.elect()
    fake.cut(session)
    proven = session.lease.deadline
    while fake.alive(session_id):
        fake.elapse(0.01)
    assert proven < fake.clock.now < began + 3.1
    fake.close()


@pytest.mark.parametrize("lost", ["create2", "getChildren", "getData", "multi"])
def test_h20_a_lost_reply_leaves_one_znode_whose_czxid_is_the_token(
    world: Memory, fake: FakeEnsemble, lost: str
) -> None:
    a = Stander(world, "a")
    fake.lose_reply(a.session, lost)
    with a.standing(world):
        wait(world, lambda: a.terms)
        (node,) = candidates(fake)
        znode = fake.znode(f"{ELECTION}/{node}")
        assert znode is not None
        assert a.terms[0].token.czxid == znode.czxid
        assert created(fake) == 1


def test_h21_the_znode_of_a_session_that_expired_is_not_adopted(
    world: Memory, fake: FakeEnsemble
) -> None:
    a = Stander(world, "a")
    fake.hold(a.session, Move.DIAL)
    fake.create(ELECTION)
    fake.lose_reply(a.session, "create2")
    with a.standing(world):
        world.quiet()
        (old,) = candidates(fake)
        czxid = fake.znode(f"{ELECTION}/{old}")
        fake.advance(2 * SESSION_TIMEOUT)
        fake.release(a.session)
        wait(world, lambda: a.terms)
        (new,) = candidates(fake)
        assert new != old
        assert czxid is not None
        assert a.terms[0].token.czxid > czxid.czxid


def test_h22_a_lagging_server_does_not_make_a_second_candidate() -> None:
    """The reply to the create is lost, and the next server has not heard of the znode yet."""
    world = Memory(servers=2)
    fake = world.fake
    first = Stander(world, "first")
    with first.standing(world):
        wait(world, lambda: first.terms)
        a = Stander(world, "a")
        fake.servers[1].lag()
        fake.lose_reply(a.session, "create2")
        fake.hold(a.session, Move.DIAL)
        with a.standing(world):
            world.quiet()
            assert len(candidates(fake)) == 2
            fake.move(a.session, server=1)
            fake.release(a.session)
            wait(world, lambda: a.phase is Phase.WAITING)
            assert_one_queue(fake, first, a)
            assert created(fake) == 2


def test_h24_a_late_answer_of_an_earlier_try_leaves_nothing(
    world: Memory, fake: FakeEnsemble
) -> None:
    """The answer to the create is handed over when the candidate has left."""
    a = Stander(world, "a")
    fake.create(ELECTION)
    fake.hold(a.session, Move.ANSWER)
    with a.standing(world):
        world.quiet()
        assert len(candidates(fake)) == 1
        a.leave()
    fake.release(a.session)
    fake.advance(1.0)
    assert candidates(fake) == []
    assert a.phase is Phase.IDLE


@pytest.mark.parametrize("arrived", [True, False])
def test_h25_a_candidate_cancelled_while_suspended_leaves_nothing(
    world: Memory, fake: FakeEnsemble, arrived: bool
) -> None:
    a = Stander(world, "a")
    fake.create(ELECTION)
    (fake.lose_reply if arrived else fake.lose_request)(a.session, "create2")
    fake.hold(a.session, Move.DIAL)
    with a.standing(world):
        world.quiet()
        assert not a.session.connected
        assert len(candidates(fake)) == arrived
        a.leave()
    fake.release(a.session)
    fake.advance(1.0)
    assert candidates(fake) == []
    assert a.phase is Phase.IDLE


@pytest.mark.parametrize("lost", ["reply", "request"])
@pytest.mark.parametrize("of", ["multi", "getData"])
def test_h26_a_lost_resignation_is_done_again(
    world: Memory, fake: FakeEnsemble, stand: Stand, lost: str, of: str
) -> None:
    """A later campaign of the same process never queues behind its own orphan."""
    a = stand("a")
    getattr(fake, f"lose_{lost}")(a.session, of)
    a.leave()
    fake.advance(1.0)
    assert candidates(fake) == []
    a.election.start()
    wait(world, lambda: len(a.terms) == 2)
    assert_one_queue(fake, a)


def test_h27_a_predecessor_that_vanishes_before_the_watch_costs_no_place(
    world: Memory, fake: FakeEnsemble, stand: Stand
) -> None:
    stand("a")
    b, c = stand("b"), Stander(world, "c")
    fake.hold(c.session, Move.ANSWER)
    with c.standing(world):
        world.quiet()
        own = candidates(fake)[-1]
        b.leave()
        fake.settle()
        fake.release(c.session)
        wait(world, lambda: c.phase is Phase.WAITING)
        assert candidates(fake)[-1] == own
        assert c.election.phase is Phase.WAITING


def test_h28_a_waiter_whose_session_died_is_not_elected_with_its_old_znode(
    world: Memory, fake: FakeEnsemble, stand: Stand
) -> None:
    a, b = stand("a"), stand("b")
    old = candidates(fake)[1]
    fake.hold(b.session, Move.READ, Move.DROP, Move.DIAL)
    expire(b.session)
    a.leave()
    fake.settle()
    assert candidates(fake) == []
    fake.release(b.session)
    wait(world, lambda: b.terms)
    assert candidates(fake) != [old]
    assert_one_queue(fake, b)


def test_h29_a_lost_watch_event_is_made_up_for(
    world: Memory, fake: FakeEnsemble, stand: Stand
) -> None:
    a, b = stand("a"), stand("b")
    fake.lose_event(b.session)
    a.leave()
    began = fake.clock.now
    wait(world, lambda: b.terms)
    assert fake.clock.now - began <= 5 * SESSION_TIMEOUT + 0.1


@pytest.mark.parametrize("seed", range(10))
def test_h33_a_parent_deleted_while_five_join_is_made_anew(seed: int) -> None:
    chance = random.Random(seed)
    world = Memory(chance.choice)
    fake = world.fake
    standing = [Stander(world, name) for name in "abcde"]
    for each in standing:
        each.election.start()
    for _ in range(chance.randrange(200)):
        if steps := fake.steps:
            fake.take(chance.choice(steps))
    if fake.znode(ELECTION) is not None:
        fake.delete(ELECTION)
    fake.advance(7 * SESSION_TIMEOUT, chance.choice)
    assert_one_queue(fake, *standing)
    fake.close()


@pytest.mark.parametrize("following", [2**31 - 1, -(2**31), -7])
def test_h34_at_the_end_of_the_numbers_nobody_is_elected_and_nothing_is_left(
    world: Memory, fake: FakeEnsemble, following: int, caplog: pytest.LogCaptureFixture
) -> None:
    fake.create(ELECTION)
    fake.number(ELECTION, following)
    session = world.connect()
    election = zkelect.Election(session, ELECTION, name="a")
    election.start()
    fake.settle()
    assert candidates(fake) == []
    assert "nobody is elected here any more" in caplog.text
    election.stop(0.0)


def test_h34_with_a_peer_beyond_the_last_number_nobody_is_elected(
    world: Memory, fake: FakeEnsemble
) -> None:
    peer = world.connect()
    fake.create(ELECTION)
    fake.number(ELECTION, 2**31 - 1)
    ask(world, peer, candidate(f"{ELECTION}/00000000000040008000000000000000__lock__"))
    fake.number(ELECTION, 5)
    a = Stander(world, "a")
    with a.standing(world):
        fake.settle()
        assert a.terms == []
        assert len(candidates(fake)) == 1


def test_h43_cycles_leave_nothing_behind(world: Memory, fake: FakeEnsemble) -> None:
    """Threads, watches, listeners, timers, objects: as many after many cycles as after some."""
    session = world.connect()
    election = zkelect.Election(session, ELECTION, name="a")

    def cycle(times: int) -> tuple[int, ...]:
        for _ in range(times):
            election.start()
            fake.settle()
            assert len(candidates(fake)) == 1
            election.stop(0.0)
            fake.settle()
            assert candidates(fake) == []
        fake.advance(10 * SESSION_TIMEOUT)
        return (
            threading.active_count(),
            sum(fake.servers[0].watches.values()),
            len(session.roster.standing),
            len(session.paused),
            objects(),
        )

    few = cycle(120)
    assert cycle(CYCLES) == few


def objects() -> int:
    """Count what the library has made, but for what the ensemble keeps for ever: its log."""
    gc.collect()
    made = (type(each) for each in gc.get_objects())
    ours = [
        each
        for each in made
        if str(each.__module__).startswith(("zkelect.core", "zkelect.session"))
    ]
    return len(ours)


def test_h44_a_flapping_candidate_disturbs_nobody_and_alone_it_leads_again(
    world: Memory, fake: FakeEnsemble, stand: Stand
) -> None:
    a, b = stand("a"), stand("b")
    for _ in range(5):
        expire(a.session)
        wait(world, lambda: a.phase is Phase.WAITING)
    assert (len(a.terms), b.told) == (1, ["elected"])
    b.leave()
    wait(world, lambda: len(a.terms) == 2)
    for terms in range(3, 7):
        expire(a.session)
        began = fake.clock.now
        wait(world, partial(has_terms, a, terms))
        assert fake.clock.now - began <= SESSION_TIMEOUT + 1.0
