"""A group: elections come and go, callbacks tell of all, and no path is stood for twice."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Any

import pytest
from session.crew import ROOT, TICK, Crew, T, Worker

import zkelect
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.fake_machine import Move

NAMES = [f"s{number}" for number in range(20)]


@pytest.fixture
def crew(fake: FakeEnsemble) -> Crew:
    return Crew(fake)


@pytest.fixture
def alone(crew: Crew) -> Worker:
    """One worker that leads whatever is added."""
    return crew.hire("alone")


# --- add -----------------------------------------------------------------------------------------


def test_every_election_of_a_group_is_led_and_told_of(alone: Worker, fake: FakeEnsemble) -> None:
    alone.add(*NAMES)
    fake.advance(T / 4)
    assert alone.led == set(NAMES)
    assert sorted(alone.told) == sorted(("elected", name) for name in NAMES)
    assert {name: each.path for name, each in alone.group.leaderships.items()} == {
        name: f"{ROOT}/{name}" for name in NAMES
    }


def test_more_can_be_added_at_any_time_and_one_that_is_there_stays(
    alone: Worker, fake: FakeEnsemble
) -> None:
    alone.add("a", "a")
    fake.advance(T / 4)
    (term,) = alone.terms
    alone.add("a", "b")
    fake.advance(T)
    assert (alone.led, len(alone.group), sorted(alone.group)) == ({"a", "b"}, 2, ["a", "b"])
    assert alone.group.leaderships["a"] is term


def test_joins_wait_for_no_answer(alone: Worker, fake: FakeEnsemble) -> None:
    """Ten thousand round trips would take ten thousand times as long as one."""
    fake.hold(alone.session, Move.SERVE)
    alone.add(*NAMES)
    fake.advance(T / 20)
    assert [alone.group.phase(name) for name in NAMES] == ["joining"] * len(NAMES)
    fake.release(alone.session)
    fake.advance(T / 20)
    assert alone.led == set(NAMES)


def test_only_so_many_join_at_a_time(alone: Worker, fake: FakeEnsemble) -> None:
    """A probe must not wait behind ten thousand of them."""
    many = [f"t{number}" for number in range(300)]
    fake.hold(alone.session, Move.SERVE)
    alone.add(*many)
    fake.advance(T / 10)
    assert Counter(alone.group.phase(name) for name in many) == {"joining": 256, "idle": 44}
    fake.release(alone.session)
    fake.advance(T / 10)
    assert alone.led == set(many)


def test_what_is_added_while_the_link_is_down_is_stood_for_when_it_is_back(
    alone: Worker, fake: FakeEnsemble
) -> None:
    fake.hold(alone.session, Move.DIAL)
    fake.drop(alone.session)
    alone.add(*NAMES)
    fake.advance(T / 4)
    assert not alone.led
    fake.release(alone.session)
    fake.advance(T)
    assert alone.led == set(NAMES)


def test_a_group_stands_again_after_its_session_was_lost(alone: Worker, fake: FakeEnsemble) -> None:
    alone.add(*NAMES)
    fake.advance(T / 4)
    expire(alone.session)
    fake.advance(3 * T)
    assert alone.led == set(NAMES)
    assert [name for what, name in alone.told if what == "deposed"].count("s1") == 1


@pytest.mark.parametrize("name", ["", "a/b", "/a", "..", "a.zkelect", "a\0", 7, None])
def test_a_name_that_cannot_be_one_is_refused_before_anything_is_made(
    alone: Worker, fake: FakeEnsemble, name: Any
) -> None:
    with pytest.raises(zkelect.InvalidArgument):
        alone.group.add("good", name)
    fake.advance(T)
    assert (len(alone.group), fake.children(ROOT)) == (0, [])


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("limit", 0),
        ("limit", -1),
        ("limit", 1.5),
        ("limit", True),
        ("spread", 1),
        ("name", "x" * 9000),
        ("eligible", 1),
        ("healthy", "no function"),
        ("unhealthy_after", 0),
        ("dialect", "etcd"),
    ],
)
def test_what_a_group_cannot_be_is_refused(fake: FakeEnsemble, argument: str, value: Any) -> None:
    session = fake.connect()
    with pytest.raises(zkelect.InvalidArgument) as refusal:
        zkelect.ElectionGroup(session, ROOT, **{argument: value})
    assert refusal.value.argument == argument


@pytest.mark.parametrize("root", ["shards", "/", "", "/a//b", "/a.zkelect"])
def test_a_root_is_a_path(fake: FakeEnsemble, root: str) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="path="):
        zkelect.ElectionGroup(fake.connect(), root)


# --- once on each path ---------------------------------------------------------------------------


def test_a_second_group_of_the_session_gets_no_election_of_the_first(
    alone: Worker, fake: FakeEnsemble
) -> None:
    alone.add("a")
    other = zkelect.ElectionGroup(alone.session, f"{ROOT}/", name="other")
    with pytest.raises(zkelect.CampaignInProgress, match="'alone' of this session"):
        other.add("b", "a", "c")
    assert len(other) == 0
    alone.add("b", "c")  # nothing of the others was taken
    fake.advance(T)
    assert alone.led == {"a", "b", "c"}


def test_an_election_of_the_session_and_a_group_exclude_each_other(alone: Worker) -> None:
    alone.add("a")
    election = zkelect.Election(alone.session, f"{ROOT}/a")
    with pytest.raises(zkelect.CampaignInProgress):
        election.start()
    alone.group.remove("a", timeout=0.0)
    election.start()
    with pytest.raises(zkelect.CampaignInProgress):
        alone.add("a")


# --- remove --------------------------------------------------------------------------------------


def test_what_is_removed_is_left(alone: Worker, fake: FakeEnsemble) -> None:
    alone.add("a", "b", "c")
    fake.advance(T / 4)
    assert not alone.group.remove("a", "b", "unknown", timeout=0.0)  # the answers are to come
    assert ("a" in alone.group, "c" in alone.group) == (False, True)
    fake.advance(T)
    assert alone.group.remove(timeout=0.0)
    assert (alone.stood, alone.led) == ({"c"}, {"c"})
    assert Counter(term.reason for term in alone.terms) == {"resigned": 2, None: 1}
    assert len(alone.leading) == 1


def test_what_waits_can_be_removed(crew: Crew, fake: FakeEnsemble) -> None:
    first, second = crew.hire("A").add("a"), crew.hire("B").add("a")
    fake.advance(T / 4)
    waits = second if first.led else first
    waits.group.remove("a", timeout=0.0)
    fake.advance(T)
    assert (waits.stood, waits.told) == (set(), [])


def test_what_has_not_begun_can_be_removed(alone: Worker, fake: FakeEnsemble) -> None:
    alone.add("a")
    assert alone.group.remove("a", timeout=0.0)
    fake.advance(T)
    assert (fake.children(ROOT), alone.told) == ([], [])


def test_one_whose_body_still_runs_can_be_added_again(alone: Worker, fake: FakeEnsemble) -> None:
    alone.add("a")
    fake.advance(T / 4)
    fake.hold(alone.session, Move.CALL)  # deposed is to come
    assert not alone.group.remove("a", timeout=0.0)
    alone.add("a")
    fake.advance(T)
    assert (len(fake.children(f"{ROOT}/a")), len(alone.terms)) == (2, 1)
    fake.release(alone.session)
    fake.advance(T)
    old, new = alone.terms
    assert (old.reason, new.reason) == ("resigned", None)
    assert [what for what, _ in alone.told] == ["elected", "deposed", "elected"]
    assert new.token > old.token
    assert len(fake.children(f"{ROOT}/a")) == 1


def test_leaving_the_block_leaves_all(fake: FakeEnsemble) -> None:
    session = fake.connect(session_timeout=T, tick_time=TICK)
    with zkelect.ElectionGroup(session, ROOT) as group:
        group.add("a")
        fake.advance(T / 4)
        assert len(group.leaderships) == 1
    fake.advance(T)
    assert (len(group), group.close(timeout=0.0)) == (0, True)
    assert session.session_id is not None
    assert fake.owned(session.session_id) == []


def test_a_callback_may_close_the_group_and_does_not_wait(fake: FakeEnsemble) -> None:
    """What it waited for could be waiting for it."""
    worker, left = Worker(fake, "A"), list[bool]()

    class Closing:
        def elected(self, _: zkelect.Leadership) -> None:
            left.append(worker.group.close())

        def suspended(self, leadership: zkelect.Leadership) -> None: ...
        def deposed(self, leadership: zkelect.Leadership) -> None: ...

    with worker.group.listen(Closing()):
        worker.add("a", "b")
        fake.advance(T)
    assert left[0] is False
    assert (worker.stood, len(worker.group), len(worker.leading)) == (set(), 0, 0)


def test_after_a_fork_nothing_here_is_ours(
    alone: Worker, fake: FakeEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.add("a")
    fake.advance(T / 4)
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        assert (alone.group.leaderships, alone.group.phase("a")) == ({}, "idle")
        assert alone.group.close()
        with pytest.raises(zkelect.SessionForked):
            alone.group.add("b")
    assert (alone.led, list(alone.group)) == ({"a"}, ["a"])


def test_a_closed_session_takes_no_more(alone: Worker, fake: FakeEnsemble) -> None:
    alone.add("a")
    alone.session.close(timeout=0.0)
    with pytest.raises(zkelect.SessionClosed):
        alone.group.add("b")
    fake.advance(T)
    assert not alone.told


# --- look, and options ---------------------------------------------------------------------------


def test_names_phases_and_what_is_led_can_be_looked_at(crew: Crew, fake: FakeEnsemble) -> None:
    one, two = crew.hire("A").add("a"), crew.hire("B").add("a")
    fake.advance(T / 4)
    assert {worker.group.phase("a") for worker in (one, two)} == {"leading", "waiting"}
    assert repr(one.group) == "<ElectionGroup /shards 'A' of 1>"
    with pytest.raises(zkelect.InvalidArgument, match="an election of this group"):
        one.group.phase("unknown")
    with pytest.raises(zkelect.InvalidArgument, match="leadership="):
        zkelect.ElectionGroup(one.session, "/other").name_of((one.terms + two.terms)[0])


def test_who_prepares_is_not_told_of_as_leading(fake: FakeEnsemble) -> None:
    seen: list[set[str]] = []

    def prepare(_: zkelect.Leadership) -> None:
        seen.append(worker.led)

    worker = Worker(fake, "A", prepare=prepare).add("a")
    fake.advance(T)
    assert (seen, worker.led) == ([set()], {"a"})


def test_eligible_and_healthy_are_asked_about_each_election(fake: FakeEnsemble) -> None:
    fit, well = {"a", "b"}, {"a", "b", "c"}
    worker = Worker(
        fake,
        "A",
        eligible=lambda name: name in fit,
        healthy=lambda name: name in well,
        unhealthy_after=1,
    )
    worker.add("a", "b", "c")
    fake.advance(T)
    assert worker.led == {"a", "b"}
    fit.add("c")
    fake.advance(T)
    assert worker.led == {"a", "b", "c"}
    well.remove("b")
    fake.advance(T)
    assert ("deposed", "b") in worker.told
    assert ("deposed", "a") not in worker.told


def test_a_group_has_no_thread(alone: Worker, fake: FakeEnsemble) -> None:
    before = threading.active_count()
    alone.add(*NAMES)
    fake.advance(T)
    assert (len(alone.led), threading.active_count()) == (len(NAMES), before)
