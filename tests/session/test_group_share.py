"""A group's limit, and how elections spread over the workers that stand for them."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from session.crew import ROOT, Crew, T, Worker

import zkelect
from zkelect.core.spread import weigh
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.fake_machine import Move

NAMES = [f"s{number}" for number in range(12)]


@pytest.fixture
def crew(fake: FakeEnsemble) -> Crew:
    return Crew(fake)


def belongs(name: str, *workers: Worker) -> Worker:
    return max(workers, key=lambda worker: weigh(worker.group.name, name))


# --- the limit -----------------------------------------------------------------------------------


def test_no_more_are_led_than_the_limit_says(crew: Crew, fake: FakeEnsemble) -> None:
    worker = crew.hire("A", limit=3).add(*NAMES)
    fake.advance(T)
    assert (len(worker.led), worker.most) == (3, 3)


def test_with_the_limit_reached_it_stands_only_where_it_leads(
    crew: Crew, fake: FakeEnsemble
) -> None:
    first = crew.hire("A", spread=False).add(*NAMES)
    fake.advance(T / 4)
    second = crew.hire("B", limit=2).add(*NAMES)
    fake.advance(T / 4)
    assert (second.stood, second.led) == (set(NAMES), set())
    first.group.remove("s1", "s2", timeout=0.0)
    fake.advance(T)
    assert second.led == second.stood == {"s1", "s2"}
    assert {second.group.phase(name) for name in NAMES} == {"leading", "idle"}


def test_a_grant_beyond_the_limit_is_declined_before_anybody_is_told(
    crew: Crew, fake: FakeEnsemble
) -> None:
    first = crew.hire("A", spread=False).add("a", "b", "c")
    fake.advance(T / 4)
    second = crew.hire("B", limit=1).add("a", "b", "c")
    fake.advance(T / 4)
    first.group.close(timeout=0.0)  # three deletions are on their way at once
    fake.settle()
    assert (len(second.led), second.most) == (1, 1)
    fake.advance(T)
    assert second.stood == second.led
    for name in {"a", "b", "c"} - second.led:
        assert [term["reason"] for term in crew.history(name)] == ["resigned", "declined"]


def test_a_seat_is_free_when_deposed_has_returned_not_before(
    crew: Crew, fake: FakeEnsemble
) -> None:
    """Until then its work may still run."""
    worker = crew.hire("A", limit=1).add("a", "b")
    fake.advance(T)
    (first,) = worker.led
    fake.hold(worker.session, Move.CALL)
    worker.group.remove(first, timeout=0.0)
    fake.advance(2 * T)
    assert (worker.led, len(worker.terms)) == (set(), 1)
    fake.release(worker.session)
    fake.advance(T)
    assert worker.led == {"a", "b"} - {first}


def test_when_there_is_room_it_stands_again_where_it_was_kept_out(
    crew: Crew, fake: FakeEnsemble
) -> None:
    worker = crew.hire("A", limit=2).add(*NAMES)
    fake.advance(T)
    for _ in range(5):
        worker.group.remove(*worker.led, timeout=0.0)
        fake.advance(T)
        assert len(worker.led) == 2
    assert worker.most == 2


def test_an_end_that_is_no_ones_choice_makes_room_too(crew: Crew, fake: FakeEnsemble) -> None:
    worker = crew.hire("A", limit=2).add(*NAMES)
    fake.advance(T)
    first = min(worker.led)
    (candidate,) = fake.children(f"{ROOT}/{first}")
    fake.delete(f"{ROOT}/{first}/{candidate}")
    fake.advance(2 * T)
    assert (len(worker.led), worker.most) == (2, 2)
    assert ("deposed", first) in worker.told


def test_what_is_removed_while_kept_out_stays_out(crew: Crew, fake: FakeEnsemble) -> None:
    worker = crew.hire("A", limit=1).add("a", "b", "c")
    fake.advance(T)
    (first,) = worker.led
    kept, removed = sorted({"a", "b", "c"} - {first})
    worker.group.remove(removed, first, timeout=0.0)
    fake.advance(2 * T)
    assert (worker.led, worker.stood, set(worker.group)) == ({kept}, {kept}, {kept})


def test_what_was_removed_takes_nobodys_turn(crew: Crew, fake: FakeEnsemble) -> None:
    worker = crew.hire("A", limit=1).add(*NAMES, *(f"t{number}" for number in range(30)))
    fake.advance(T)
    (first,) = worker.led
    kept = sorted(set(worker.group) - {first}, key=lambda name: weigh("A", name))
    worker.group.remove(first, *kept[1:], timeout=0.0)
    fake.advance(T)
    assert worker.led == {kept[0]}


@pytest.mark.parametrize("seed", range(8))
def test_the_limit_holds_whatever_happens(crew: Crew, fake: FakeEnsemble, seed: int) -> None:
    """Lost links, lost sessions, elections of the ensemble, every order of messages."""
    dice = random.Random(seed)
    workers = [crew.hire(f"host-{number}", limit=3).add(*NAMES) for number in range(4)]
    for _ in range(12):
        session = dice.choice(workers).session
        match dice.randrange(4):
            case 0:
                fake.drop(session)
            case 1 if session.connected:
                expire(session)
            case 2:
                fake.elect()
        fake.advance(dice.random() * T, dice.choice)
        assert all(len(each.led) <= 3 for each in workers)
    fake.advance(20 * T, dice.choice)
    assert [worker.most for worker in workers] == [3] * 4
    assert [len(worker.led) for worker in workers] == [3] * 4


# --- the spread ----------------------------------------------------------------------------------


def test_each_election_comes_to_whom_it_belongs_and_moves_once(
    crew: Crew, fake: FakeEnsemble
) -> None:
    first = crew.hire("A").add(*NAMES)
    fake.advance(T)
    workers = first, crew.hire("B").add(*NAMES), crew.hire("C").add(*NAMES)
    crew.settle()
    assert crew.led == {name: belongs(name, *workers) for name in NAMES}
    moved = len(NAMES) - len(first.led)
    assert [sum(what == "elected" for what, _ in each.told) for each in workers] == [
        len(NAMES),
        *(len(each.led) for each in workers[1:]),
    ]
    assert [what for what, _ in first.told].count("deposed") == moved


def test_no_token_falls_while_elections_move(crew: Crew, fake: FakeEnsemble) -> None:
    for name in ("A", "B", "C", "D"):
        crew.hire(name).add(*NAMES)
        fake.advance(3 * T)
    crew.settle()
    fake.kill(crew.workers.pop(0).session)
    crew.settle()
    assert set(crew.led) == set(NAMES)
    for name in NAMES:
        tokens = [zkelect.Token.parse(term["token"]) for term in crew.history(name)]
        tokens.append(crew.led[name].group.leaderships[name].token)
        assert tokens == sorted(set(tokens))


def test_when_a_worker_goes_only_its_elections_move(crew: Crew, fake: FakeEnsemble) -> None:
    workers = [crew.hire(name).add(*NAMES) for name in ("A", "B", "C")]
    crew.settle()
    gone, *left = workers
    before, told = crew.led, [len(each.told) for each in left]
    fake.kill(gone.session)
    crew.workers.remove(gone)
    crew.settle()
    assert crew.led == {
        name: belongs(name, *left) if leader is gone else leader for name, leader in before.items()
    }
    came = Counter(crew.led[name] for name, leader in before.items() if leader is gone)
    for each, so_far in zip(left, told, strict=True):
        elected = [what for what, _ in each.told[so_far:]]
        assert elected.count("elected") - elected.count("deposed") == came[each]


def test_what_is_spread_stays_as_it_is(crew: Crew) -> None:
    workers = [crew.hire(name, limit=12).add(*NAMES) for name in ("A", "B", "C")]
    for _ in range(3):
        crew.settle()
    before = crew.led, [len(worker.told) for worker in workers]
    crew.settle()
    assert (crew.led, [len(worker.told) for worker in workers]) == before


def test_workers_that_begin_together_meet_little(crew: Crew, fake: FakeEnsemble) -> None:
    """Each begins where it weighs most, so most elections need not move at all."""
    many = [f"t{number}" for number in range(100)]
    workers = [crew.hire(name).add(*many) for name in ("A", "B")]
    fake.advance(T / 4, random.Random(7).choice)
    right = [name for name, leader in crew.led.items() if leader is belongs(name, *workers)]
    assert len(right) > 0.65 * len(many)


def test_without_spread_whoever_leads_stays(crew: Crew, fake: FakeEnsemble) -> None:
    first = crew.hire("A", spread=False).add(*NAMES)
    fake.advance(T)
    crew.hire("B").add(*NAMES)
    crew.settle()
    assert first.led == set(NAMES)
    assert not [name for what, name in first.told if what == "deposed"]


def test_few_elections_are_without_a_leader_at_a_time(crew: Crew, fake: FakeEnsemble) -> None:
    """A body that takes its time to return must not let all others wait for theirs as well."""
    many = [f"t{number}" for number in range(60)]
    first = crew.hire("A").add(*many)
    fake.advance(T)
    second = crew.hire("B").add(*many)
    fake.advance(T)
    fake.hold(first.session, Move.CALL)  # nothing that was given away is let go
    crew.settle()
    assert len(many) - len(first.led) == 8
    fake.release(first.session)
    crew.settle()
    assert crew.led == {name: belongs(name, first, second) for name in many}


def test_an_election_goes_seldom_to_who_cannot_keep_it(crew: Crew, fake: FakeEnsemble) -> None:
    def fail(_: zkelect.Leadership) -> None:
        raise OSError("the disk is full")

    name = next(name for name in NAMES if weigh("B", name) > weigh("A", name))
    first = crew.hire("A").add(name)
    fake.advance(T)
    crew.hire("B", prepare=fail).add(name)
    fake.advance(100 * T)
    times = [what for what, _ in first.told].count("deposed")
    assert 2 <= times <= 10  # once in ten session timeouts
    assert crew.led == {name: first}


def test_nobody_resigns_for_a_worker_at_its_limit(crew: Crew, fake: FakeEnsemble) -> None:
    """It does not stand there: who would wait for it waits in vain."""
    first = crew.hire("A").add(*NAMES)
    fake.advance(T)
    second = crew.hire("B", limit=1).add(*NAMES)
    crew.settle()
    assert len(second.led) == 1
    before = len(first.told)
    crew.settle()
    assert len(first.told) == before
    declined = [
        term for name in NAMES for term in crew.history(name) if term["reason"] == "declined"
    ]
    assert len(declined) < 8  # of those that were given to it in one and the same moment


def test_foreign_company_stops_the_spread_not_the_group(crew: Crew, fake: FakeEnsemble) -> None:
    """kazoo's candidates would not step back: nobody resigns for somebody behind them."""
    name = next(name for name in NAMES if weigh("B", name) > weigh("A", name))
    first = crew.hire("A").add(name)
    fake.advance(T)
    fake.create(f"{ROOT}/{name}/00000000000040008000000000000000__lock__0000000001")
    crew.hire("B").add(name)
    crew.settle()
    assert crew.led == {name: first}
