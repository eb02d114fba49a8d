"""The body that runs while a candidate waits: when it begins, and when it has to be over."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from session.troupe import PATH, Member, T, Troupe

import zkelect
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.fake_machine import Move

WITHIN = 20.0
"""Seconds: an outer bound against a hang; the bodies are real threads, the servers are not."""


class Replica:
    """Follows the leader, as a warm replica does, and notes what it does.

    :ivar notes: in order, of all its bodies. :ivar free: unset, a body hangs in its own work
        when its loop has ended. :ivar fault: what it raises then.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.free = threading.Event()
        self.free.set()
        self.fault: Exception | None = None
        self.threads: list[threading.Thread] = []
        self._noted = threading.Condition()

    def follow(self, leaders: zkelect.Observation) -> None:
        self.threads.append(threading.current_thread())
        self.note("begun")
        for leader in leaders:
            self.note("nobody" if leader is None else leader.name)
        self.note("ended")
        assert self.free.wait(WITHIN)
        if self.fault is not None:
            raise self.fault
        self.note("returned")

    def prepare(self, _: zkelect.Leadership) -> None:
        self.note("prepare")

    def note(self, what: str) -> None:
        with self._noted:
            self.notes.append(what)
            self._noted.notify_all()

    def wait(self, what: str, count: int = 1) -> None:
        with self._noted:
            noted = self._noted.wait_for(lambda: self.notes.count(what) >= count, WITHIN)
            assert noted, (what, self.notes)

    def join(self) -> None:
        """Wait until none of its bodies runs."""
        for thread in self.threads:
            thread.join(WITHIN)
            assert not thread.is_alive()


@pytest.fixture
def replica() -> Iterator[Replica]:
    made = Replica()
    yield made
    made.free.set()
    made.join()


def is_granted(member: Member) -> bool:
    """Or more: a body that returns at once is waited for by nobody."""
    return member.phase in (zkelect.Phase.PREPARING, zkelect.Phase.LEADING)


def test_it_follows_while_we_wait_and_is_over_before_we_prepare(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica
) -> None:
    a = troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow, prepare=replica.prepare)
    fake.settle()
    replica.wait("A")
    a.election.stop(0.0)
    troupe.until(lambda: is_granted(b), "B is granted")
    replica.join()
    troupe.until(lambda: b.terms, "B leads")
    assert [note for note in replica.notes if note != "nobody"] == [
        "begun",
        "A",
        "ended",
        "returned",
        "prepare",
    ]


def test_who_is_elected_at_once_has_none(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica
) -> None:
    """Also when its lease takes a moment: there is nobody to follow."""
    troupe.lead("A", standby=replica.follow)
    fake.advance(2 * T)
    assert (replica.notes, replica.threads) == ([], [])


def test_a_candidate_without_one_has_no_thread(troupe: Troupe, fake: FakeEnsemble) -> None:
    before = threading.active_count()
    troupe.lead("A")
    troupe.queue("B")
    fake.advance(T)
    assert threading.active_count() == before


def test_a_session_that_expires_does_not_end_it(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica
) -> None:
    troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow)
    fake.settle()
    replica.wait("A")
    place = fake.children(PATH)[1]
    for _ in range(3):
        expire(b.session)
        fake.advance(2 * T)
    assert fake.children(PATH)[1] != place
    assert b.phase is zkelect.Phase.WAITING
    assert replica.notes.count("begun") == 1
    assert "ended" not in replica.notes
    b.election.stop(0.0)


def test_one_that_returns_by_itself_runs_again_in_the_next_campaign_only(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica
) -> None:
    def look(leaders: zkelect.Observation) -> None:
        replica.threads.append(threading.current_thread())
        replica.note("begun")

    a = troupe.lead("A")
    b = troupe.queue("B", standby=look)
    replica.wait("begun")
    replica.join()
    expire(b.session)
    fake.advance(2 * T)
    assert b.phase is zkelect.Phase.WAITING
    assert replica.notes == ["begun"]
    a.election.stop(0.0)
    troupe.until(lambda: b.terms, "B leads")
    a.start()
    troupe.until(lambda: a.phase is zkelect.Phase.WAITING, "A waits")
    b.terms[0].end("stalled")
    troupe.until(lambda: b.phase is zkelect.Phase.WAITING, "B stands again")
    replica.wait("begun", 2)
    replica.join()


def test_one_that_does_not_return_keeps_us_from_leading(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """The wait counts towards prepare_timeout; and there are never two of them."""
    a = troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow, prepare=replica.prepare, prepare_timeout=T / 4)
    replica.wait("begun")
    replica.free.clear()
    a.election.stop(0.0)
    troupe.until(lambda: b.phase is zkelect.Phase.PREPARING, "B is granted")
    replica.wait("ended")
    c = troupe.queue("C")
    troupe.until(lambda: c.terms, "C leads instead")
    assert "is deposed (unprepared)" in caplog.text
    troupe.until(lambda: b.phase is zkelect.Phase.WAITING, "B stands again")
    fake.advance(T)
    assert replica.notes.count("begun") == 1
    replica.free.set()
    replica.threads[0].join(WITHIN)
    replica.wait("begun", 2)
    c.election.stop(0.0)
    troupe.until(lambda: is_granted(b), "B is granted again")
    replica.join()
    troupe.until(lambda: b.terms, "B leads")
    last = [note for note in replica.notes if note in ("begun", "returned", "prepare")]
    assert last == ["begun", "returned", "begun", "returned", "prepare"]


def test_without_a_limit_it_may_take_as_long_as_the_lease_is_renewed(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica
) -> None:
    a = troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow)
    replica.wait("begun")
    replica.free.clear()
    a.election.stop(0.0)
    troupe.until(lambda: b.phase is zkelect.Phase.PREPARING, "B is granted")
    fake.advance(10 * T)
    assert b.phase is zkelect.Phase.PREPARING
    assert b.terms == []
    replica.free.set()
    replica.join()
    troupe.until(lambda: b.terms, "B leads")


def test_one_that_raises_while_we_wait_costs_us_our_place(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for the error: it is logged as it is, and we stand again behind the others."""

    def fail(leaders: zkelect.Observation) -> None:
        replica.threads.append(threading.current_thread())
        replica.note("begun")
        raise OSError("the disk is full")

    troupe.lead("A")
    b = troupe.cast("B", standby=fail).start()
    troupe.until(lambda: replica.threads, "B waits")
    replica.wait("begun")
    replica.join()
    fake.settle()
    assert len(fake.children(PATH)) == 1
    assert f"{PATH}: the campaign failed: the disk is full" in caplog.text
    assert "Traceback" in caplog.text
    troupe.until(lambda: replica.notes.count("begun") > 1, "B stands again")
    replica.join()
    b.election.stop(0.0)


def test_one_that_raises_when_it_should_end_leaves_us_unprepared(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    a = troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow, prepare=replica.prepare)
    replica.wait("begun")
    replica.fault = OSError("the disk is full")
    replica.free.clear()
    a.election.stop(0.0)
    troupe.until(lambda: b.phase is zkelect.Phase.PREPARING, "B is granted")
    replica.free.set()
    replica.join()
    fake.settle()
    assert "is deposed (unprepared)" in caplog.text
    assert "the disk is full" in caplog.text
    assert "prepare" not in replica.notes
    assert b.terms == []


def test_one_that_raises_after_all_is_logged(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow)
    replica.wait("begun")
    replica.fault = OSError("the disk is full")
    replica.free.clear()
    b.election.stop(0.0)
    replica.free.set()
    replica.join()
    assert f"{PATH}: standby raised" in caplog.text
    assert "the disk is full" in caplog.text


def test_an_error_that_nobody_came_for_is_logged_and_not_told_of_the_next_term(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    a = troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow)
    replica.wait("begun")
    replica.fault = OSError("the disk is full")
    a.election.stop(0.0)
    fake.hold(b.session, Move.CALL)  # nobody of B's has time
    troupe.until(lambda: b.phase is zkelect.Phase.PREPARING, "B is granted")
    replica.join()
    b.election.resign()
    assert f"{PATH}: standby raised" in caplog.text
    replica.fault = None
    fake.release(b.session)
    troupe.until(lambda: b.terms, "B leads in its next term")


def test_no_thread_to_be_had_is_told(
    troupe: Troupe,
    fake: FakeEnsemble,
    replica: Replica,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is started by who brings the news, and must not break the driver."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    troupe.lead("A")
    monkeypatch.setattr("zkelect.standby.threading.Thread.start", refuse)
    b = troupe.cast("B", standby=replica.follow).start()
    fake.settle()
    assert "the campaign failed: can't start new thread" in caplog.text
    assert len(fake.children(PATH)) == 1
    monkeypatch.undo()
    troupe.until(lambda: replica.threads, "B stands again, with a body")
    b.election.stop(0.0)


def test_close_ends_it(troupe: Troupe, fake: FakeEnsemble, replica: Replica) -> None:
    troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow)
    replica.wait("begun")
    b.session.close(timeout=0.0)
    replica.join()
    assert replica.notes[-2:] == ["ended", "returned"]


def test_stop_says_whether_it_still_runs(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica
) -> None:
    troupe.lead("A")
    b = troupe.queue("B", standby=replica.follow)
    replica.wait("begun")
    replica.free.clear()
    assert not b.election.stop(0.0)
    fake.settle()
    assert len(fake.children(PATH)) == 1


def test_it_may_ask_whether_its_wait_is_over(
    troupe: Troupe, fake: FakeEnsemble, replica: Replica
) -> None:
    """For a body that is not a loop over the leaders."""
    seen: list[bool] = []

    def work(leaders: zkelect.Observation) -> None:
        replica.threads.append(threading.current_thread())
        seen.append(leaders.closed)
        replica.note("begun")
        while not leaders.closed:
            leaders.wait(WITHIN)
            _ = leaders.leader
        seen.append(leaders.wait(WITHIN))

    troupe.lead("A")
    b = troupe.queue("B", standby=work)
    replica.wait("begun")
    b.election.stop(0.0)
    replica.join()
    assert seen == [False, False]
