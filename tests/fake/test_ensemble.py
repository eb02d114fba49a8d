"""What only an ensemble in memory can do: every message, fault and second by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from contract.memory import Memory
from contract.stories import Ear, number_of
from contract.world import (
    SESSION_TIMEOUT,
    TICK,
    ask,
    candidate,
    children,
    create,
    get,
    put,
    send_all,
)

import zkelect
from zkelect.session.gateway import Failure, Fault
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.fake import Step
from zkelect.testing.fake_machine import Move

PATH = Memory.path


# --- messages, one by one ------------------------------------------------------------------------


def test_nothing_happens_until_it_is_let(fake: FakeEnsemble) -> None:
    session, answers = fake.connect(), list[Any]()
    send_all(session, answers, create(f"{PATH}/x"))
    assert (answers, fake.children(PATH)) == ([], [])
    assert fake.steps == [Step(session, Move.SERVE)]
    assert fake.deliver_next()
    assert (answers, fake.children(PATH)) == ([], ["x"])
    assert fake.steps == [Step(session, Move.READ)]
    while fake.deliver_next():
        pass
    assert answers == [f"{PATH}/x"]


def test_a_step_that_cannot_happen_is_refused(fake: FakeEnsemble) -> None:
    with pytest.raises(zkelect.Misuse, match="cannot happen now"):
        fake.take(Step(fake.connect(), Move.ANSWER))


def test_an_event_can_come_before_the_reply_that_set_its_watch(fake: FakeEnsemble) -> None:
    """kazoo hands answers and events over on two threads."""
    session, ear, answers = fake.connect(), Ear(), list[Any]()
    fake.create(f"{PATH}/x")
    fake.hold(session, Move.ANSWER)
    send_all(session, answers, get(f"{PATH}/x", ear.watch))
    fake.settle()
    fake.delete(f"{PATH}/x")
    fake.settle()
    assert (ear.heard, answers) == ([True], [])
    fake.release(session)
    fake.settle()
    assert answers[0][0] == b""


def test_the_same_choices_lead_to_the_same_world() -> None:
    def play(seed: int) -> tuple[int, list[str], float]:
        world = Memory(random.Random(seed).choice)
        sessions = [world.connect() for _ in range(3)]
        answers: list[Any] = []
        for n, session in enumerate(sessions):
            send_all(session, answers, candidate(f"{PATH}/{n}-"), candidate(f"{PATH}/{n}-"))
        world.fake.drop(sessions[1])
        world.fake.advance(1.0, random.Random(seed).choice)
        return world.fake.zxid, world.fake.children(PATH), world.fake.clock.now

    assert play(7) == play(7)
    assert len({tuple(play(seed)[1]) for seed in range(20)}) > 1


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["reply", "request"])
def test_the_nth_reply_or_request_is_lost_with_its_connection(
    fake: FakeEnsemble, lost: str
) -> None:
    session, answers = fake.connect(), list[Any]()
    getattr(fake, f"lose_{lost}")(session, "create", nth=2)
    send_all(session, answers, *(create(f"{PATH}/{n}") for n in range(4)))
    fake.advance(0.1)
    assert answers[0] == f"{PATH}/0"
    assert [answer.fault for answer in answers[1:]] == [Fault.UNKNOWN] * 3
    # What was sent behind a lost reply was done all the same; behind a lost request, nothing.
    assert fake.children(PATH) == (["0", "1", "2", "3"] if lost == "reply" else ["0"])
    assert session.connected


def test_a_lost_event_is_lost_alone(fake: FakeEnsemble) -> None:
    session, lost, heard = fake.connect(), Ear(), Ear()
    answers: list[Any] = []
    for path in ("x", "y"):
        fake.create(f"{PATH}/{path}")
    send_all(session, answers, get(f"{PATH}/x", lost.watch), get(f"{PATH}/y", heard.watch))
    fake.settle()
    fake.lose_event(session)
    fake.delete(f"{PATH}/x")
    fake.delete(f"{PATH}/y")
    fake.settle()
    assert (lost.heard, heard.heard) == ([], [True])


def test_a_request_can_outlive_its_connection_but_not_the_next_one(fake: FakeEnsemble) -> None:
    session, answers = fake.connect(), list[Any]()
    send_all(session, answers, create(f"{PATH}/x"))
    fake.hold(session, Move.DIAL)
    fake.drop(session)
    fake.take(Step(session, Move.DROP))
    assert Step(session, Move.SERVE) in fake.steps
    fake.take(Step(session, Move.SERVE))
    assert fake.children(PATH) == ["x"]
    fake.release(session)
    fake.advance(1.0)
    assert [answer.fault for answer in answers] == [Fault.UNKNOWN]


def test_what_is_asked_while_there_is_no_connection_goes_out_on_the_next(
    fake: FakeEnsemble,
) -> None:
    """As kazoo does it: that is why zkelect asks nothing then."""
    session, answers = fake.connect(), list[Any]()
    fake.hold(session, Move.DIAL)
    fake.drop(session)
    fake.settle()
    send_all(session, answers, create(f"{PATH}/x"))
    fake.release(session)
    fake.advance(1.0)
    assert answers == [f"{PATH}/x"]


# --- servers -----------------------------------------------------------------------------------


def test_a_lagging_server_shows_the_past_until_its_client_writes() -> None:
    world = Memory(servers=3)
    session = world.fake.connect(session_timeout=SESSION_TIMEOUT, server=1)
    world.fake.servers[1].lag()
    world.fake.create(f"{PATH}/x")
    assert ask(world, session, children(PATH)) == ()
    assert ask(world, session, create(f"{PATH}/y")) == f"{PATH}/y"
    assert sorted(ask(world, session, children(PATH))) == ["x", "y"]


def test_no_server_takes_a_client_that_has_seen_more_than_itself() -> None:
    world = Memory(servers=2)
    session = world.fake.connect(session_timeout=SESSION_TIMEOUT)
    world.fake.servers[1].lag()
    ask(world, session, create(f"{PATH}/x"))
    world.fake.move(session, server=1)
    world.fake.advance(0.1)
    assert session.connected
    assert ask(world, session, children(PATH)) == ("x",)


def test_a_server_without_a_quorum_answers_reads_and_swallows_writes() -> None:
    world = Memory(servers=3)
    session, answers = world.fake.connect(session_timeout=SESSION_TIMEOUT), list[Any]()
    world.fake.servers[0].isolate()
    assert ask(world, session, children(PATH)) == ()
    send_all(session, answers, create(f"{PATH}/x"), children(PATH))
    world.fake.settle()
    assert answers == []
    assert world.fake.children(PATH) == []


def test_without_a_majority_no_session_expires_and_the_next_leader_starts_them_anew() -> None:
    world = Memory(servers=3)
    fake = world.fake
    session = fake.connect(session_timeout=SESSION_TIMEOUT)
    session_id = session.credentials()[0]
    for server in fake.servers[:2]:
        server.stop()
    fake.advance(5 * SESSION_TIMEOUT)
    assert fake.alive(session_id)
    epoch = fake.zxid >> 32
    fake.pause(session)
    fake.servers[0].start()
    assert fake.zxid >> 32 == epoch + 1
    fake.advance(SESSION_TIMEOUT - 0.1)
    assert fake.alive(session_id)
    fake.advance(0.2)
    assert not fake.alive(session_id)


def test_what_a_server_has_not_reported_dies_with_it() -> None:
    """So an answered request does not buy a whole timeout (the lease's first rule)."""
    world = Memory(servers=3)
    fake = world.fake
    session = fake.connect(session_timeout=SESSION_TIMEOUT, server=1)
    session_id = session.credentials()[0]
    fake.advance(SESSION_TIMEOUT / 3 - 0.01)  # it has not pinged, or sent anything, since
    ask(world, session, children(PATH))
    asked = fake.clock.now
    fake.pause(session)
    fake.servers[1].stop()
    fake.elapse(SESSION_TIMEOUT - 0.3)
    assert not fake.alive(session_id)
    assert fake.clock.now < asked + SESSION_TIMEOUT


def test_each_server_grants_what_its_own_limits_allow(fake: FakeEnsemble) -> None:
    for asked, granted in ((0.1, 2 * TICK), (1.0, 1.0), (100.0, 20 * TICK)):
        assert fake.connect(session_timeout=asked).timeout == pytest.approx(granted)


# --- numbers -----------------------------------------------------------------------------------


def test_numbers_stick_at_the_largest_one(world: Memory) -> None:
    session = world.connect()
    world.fake.number(PATH, 2**31 - 2)
    made = ask(world, session, *[candidate(f"{PATH}/x-")] * 4)
    assert [number_of(answer) for answer in made[:2]] == [2147483646, 2147483647]
    assert [answer.fault for answer in made[2:]] == [Fault.NODE_EXISTS] * 2


def test_a_number_below_zero_is_written_as_java_does(world: Memory) -> None:
    session = world.connect()
    world.fake.number(PATH, -7)
    made = ask(world, session, candidate(f"{PATH}/x-"), candidate(f"{PATH}/x-"))
    assert [answer[0] for answer in made] == [f"{PATH}/x--000000007", f"{PATH}/x--000000006"]


# --- people ------------------------------------------------------------------------------------


def test_an_operator_is_told_when_something_cannot_be_done(fake: FakeEnsemble) -> None:
    with pytest.raises(zkelect.RequestFailed, match="NO_NODE"):
        fake.delete(f"{PATH}/nothing")
    with pytest.raises(zkelect.RequestFailed, match="NODE_EXISTS"):
        fake.create(PATH)
    fake.create(f"{PATH}/x")
    fake.create(f"{PATH}/x/y")
    fake.put(f"{PATH}/x", b"1")
    assert (found := fake.znode(f"{PATH}/x")) is not None
    assert (found.data, found.version) == (b"1", 1)
    fake.delete(PATH)
    assert fake.znode(PATH) is None


def test_expire_takes_a_session_of_this_ensemble(fake: FakeEnsemble) -> None:
    session = fake.connect()
    session_id, _ = session.credentials()
    expire(session)
    assert not fake.alive(session_id)
    fake.advance(1.0)
    assert session.session_id not in (None, session_id)


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("servers", lambda: FakeEnsemble(0)),
        ("tick_time", lambda: FakeEnsemble(tick_time=0.0)),
        ("tick_time", lambda: FakeEnsemble(tick_time=float("nan"))),
        ("seconds", lambda: FakeEnsemble().advance(-1.0)),
        ("nth", lambda: (fake := FakeEnsemble()).lose_event(fake.connect(), nth=0)),
    ],
)
def test_what_cannot_be_is_refused(argument: str, make: Any) -> None:
    with pytest.raises(zkelect.InvalidArgument, match=f"^{argument}="):
        make()


def test_watches_and_answers_do_not_pile_up(world: Memory) -> None:
    session, path = world.connect(), f"{PATH}/x"
    for _ in range(100):
        ask(world, session, create(path), get(path, Ear().watch))
        assert not isinstance(ask(world, session, put(path, b"1")), Failure)
        world.fake.delete(path)
        assert ask(world, session, get(path, Ear().watch)).fault is Fault.NO_NODE
    assert world.fake.servers[0].watches == {}
    assert world.fake.steps == []


WAITING: dict[str, Callable[[zkelect.Election], object]] = {
    "campaign": lambda election: election.campaign(timeout=1.0).__enter__(),
    "run": lambda election: election.run(print),
    "run_forever": lambda election: election.run_forever(print),
}


@pytest.mark.parametrize("call", WAITING.values(), ids=WAITING)
def test_what_would_wait_for_ever_is_refused_at_once(
    call: Callable[[zkelect.Election], object],
) -> None:
    with FakeEnsemble() as fake:
        election = zkelect.Election(fake.connect(), "/jobs")
        with pytest.raises(zkelect.Misuse, match="nothing happens by itself"):
            call(election)
        fake.settle()
        assert not fake.children("/jobs")
