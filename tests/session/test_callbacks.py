"""User code: never on a thread that tracks the lease, told in order, heard when it raises."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from session.troupe import PATH, T, Troupe

import zkelect
from zkelect.core.holddown import FIRST_BACKOFF
from zkelect.session.clock import SystemClock
from zkelect.session.pool import CallbackPool
from zkelect.testing import FakeEnsemble
from zkelect.testing.fake_machine import Move

WITHIN = 20.0


@pytest.fixture
def pool() -> Iterator[CallbackPool]:
    pool = CallbackPool(SystemClock().boottime)
    yield pool
    pool.close()


def test_h14_callbacks_run_when_a_thread_of_theirs_has_time(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """Whatever they do, the lease is tracked meanwhile."""
    a, b = troupe.lead("A"), troupe.queue("B")
    fake.hold(a.session, Move.CALL)
    a.session.link.shut()
    fake.advance(2 * T)
    assert a.notes == [("elected", a.terms[0])]  # nothing was told, nobody was waited for
    assert a.terms[0].check() == a.terms[0].token
    assert not b.terms
    fake.release(a.session)
    fake.settle()
    assert [what for what, _ in a.notes] == ["elected", "suspended"]


def test_h14_what_blocks_holds_nobody_else(pool: CallbackPool) -> None:
    free, told = threading.Event(), threading.Event()

    def stick() -> None:
        free.wait(WITHIN)

    pool.submit("stuck", "stuck", stick)
    pool.submit("other", "other", told.set)
    assert told.wait(WITHIN / 4)
    free.set()


def test_h14_what_blocks_for_long_is_named_and_replaced(
    pool: CallbackPool, caplog: pytest.LogCaptureFixture
) -> None:
    """Two of them hold both threads; the third callback gets one of its own."""
    free, told = threading.Event(), threading.Event()
    begun = [threading.Event(), threading.Event()]

    def stick(event: threading.Event) -> None:
        event.set()
        free.wait(WITHIN)

    pool.submit("one", "one.elected", lambda: stick(begun[0]))
    pool.submit("two", "two.elected", lambda: stick(begun[1]))
    assert all(event.wait(WITHIN) for event in begun)
    pool.submit("three", "three.elected", told.set)
    pool.watch(SystemClock().boottime() + T, patience=T / 2)
    assert told.wait(WITHIN)
    free.set()
    assert {name for name in ("one.elected", "two.elected") if name in caplog.text} == {
        "one.elected",
        "two.elected",
    }


def test_h14_what_raises_is_heard_and_the_next_one_runs(
    pool: CallbackPool, caplog: pytest.LogCaptureFixture
) -> None:
    told = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    pool.submit("lane", "Hooks.elected", fail)
    pool.submit("lane", "Hooks.deposed", told.set)
    assert told.wait(WITHIN)
    assert "Hooks.elected raised" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_h13_callbacks_of_one_candidate_never_run_side_by_side(pool: CallbackPool) -> None:
    running, most, done = [0], [0], threading.Semaphore(0)

    def run() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        threading.Event().wait(0.001)  # so that another one could begin
        running[0] -= 1
        done.release()

    for _ in range(20):
        pool.submit("lane", "callback", run)
    assert all(done.acquire(timeout=WITHIN) for _ in range(20))
    assert most == [1]


def test_h11_inside_deposed_everything_says_no(troupe: Troupe, fake: FakeEnsemble) -> None:
    """CAMEL-24457."""
    a = troupe.cast("A")
    seen: list[tuple[float, bool]] = []

    class Inquirer:
        def elected(self, leadership: zkelect.Leadership) -> None: ...
        def suspended(self, leadership: zkelect.Leadership) -> None: ...
        def deposed(self, leadership: zkelect.Leadership) -> None:
            with pytest.raises(zkelect.LeadershipLost):
                leadership.check()
            assert a.phase is not zkelect.Phase.LEADING
            seen.append((leadership.remaining(), leadership.wait_lost(0.0)))

    with a.election.listen(Inquirer()):
        a.start()
        troupe.until(lambda: a.terms, "A leads")
        a.terms[0].end("fenced")
        fake.settle()
    assert seen == [(0.0, True)]
    assert a.ends == ["fenced"]


@pytest.mark.parametrize("cause", ["healthy", "raises", "stalled"])
def test_h45_a_body_that_is_of_no_use_ends_its_term(
    cause: str, troupe: Troupe, fake: FakeEnsemble
) -> None:
    options: dict[str, dict[str, Any]] = {
        "healthy": {"healthy": lambda: False},
        "raises": {"healthy": lambda: 1 / 0},
        "stalled": {"stall_timeout": T / 2},
    }
    a = troupe.lead("A", **options[cause])
    b = troupe.queue("B")
    fake.advance(2 * T)
    assert a.ends == ["stalled" if cause == "stalled" else "unhealthy"]
    assert b.terms


def test_h47_who_takes_too_long_to_prepare_never_serves(troupe: Troupe, fake: FakeEnsemble) -> None:
    a = troupe.cast("A", prepare=lambda _: None, prepare_timeout=T / 4).start()
    fake.hold(a.session, Move.CALL)
    troupe.until(lambda: a.phase is zkelect.Phase.PREPARING, "A is granted")
    b = troupe.queue("B")
    fake.advance(T / 4 + 0.1)
    fake.release(a.session)
    fake.advance(T)
    assert not a.terms
    assert b.terms


def test_h47_who_fails_to_prepare_never_serves(troupe: Troupe, fake: FakeEnsemble) -> None:
    def fail(_: zkelect.Leadership) -> None:
        raise OSError("the database is not there")

    a = troupe.cast("A", prepare=fail).start()
    fake.settle()
    b = troupe.cast("B").start()
    fake.advance(4 * T)
    assert (a.terms, len(b.terms)) == ([], 1)


def test_h44_three_involuntary_ends_hold_a_candidate_back(
    troupe: Troupe, fake: FakeEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others stand. The draw is the longest wait of all."""
    a = troupe.cast("A", stall_timeout=0.05).start()
    troupe.until(lambda: len(a.terms) == 3, "alone it leads again soon")
    b = troupe.cast("B").start()
    monkeypatch.setattr("zkelect.session.standing.random.random", lambda: 1.0)
    troupe.until(lambda: b.terms, "B leads")
    assert len(a.ends) == 3
    ended = fake.clock.now
    while len(fake.children(PATH)) == 1:
        fake.advance(0.02)
    assert fake.clock.now - ended > 0.9 * FIRST_BACKOFF


def test_campaigns_that_fail_come_ever_more_seldom_until_one_succeeds(
    troupe: Troupe, fake: FakeEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is none, a counter at its end: only a person can mend it."""
    record = f"{PATH}.zkelect"
    troupe.lead("A").election.stop()
    mended = fake.znode(record)
    assert mended is not None
    fake.put(record, b"no record")
    monkeypatch.setattr("zkelect.session.standing.random.random", lambda: 1.0)
    b = troupe.cast("B").start()
    asked = troupe.asked[b.session]
    fake.advance(100.0)
    assert 3 <= asked.count("create2") <= 8  # after 2, 3, 5, 9, 17 and 33 seconds
    fake.put(record, mended.data)
    fake.advance(100.0)
    assert b.terms


def test_h16_a_forked_child_does_not_lead(troupe: Troupe, fake: FakeEnsemble) -> None:
    """kazoo #519. The child ends without cleaning up what is its parent's."""
    a = troupe.lead("A")
    (term,) = a.terms
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, _found(a.election, term).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read) as told:
        assert told.read() == "LeadershipLost forked, 0.0 s, SessionForked"
    assert term.check() == term.token


def _found(election: zkelect.Election, term: zkelect.Leadership) -> str:
    """What the child finds: its leadership and its session are of no use."""
    try:
        checked = str(term.check())
    except zkelect.LeadershipLost as lost:
        checked = f"LeadershipLost {lost.reason}"
    stands = "it stands"
    try:
        election.start()
    except zkelect.ZkelectError as error:
        stands = type(error).__name__
    return f"{checked}, {term.remaining()} s, {stands}"


def test_h38_close_leaves_the_znode_of_a_body_that_still_runs(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """It is left to expire, so that nobody is elected over running work."""
    a, b = troupe.lead("A"), troupe.queue("B")
    a.fake.hold(a.session, Move.CALL)  # deposed is told, and has not returned
    a.session.close(timeout=0.0)
    closed = fake.clock.now
    fake.settle()
    assert not b.terms
    troupe.until(lambda: b.terms, "the session expired")
    assert fake.clock.now - closed > T / 2


def test_h38_close_ends_every_leadership(troupe: Troupe, fake: FakeEnsemble) -> None:
    a = troupe.lead("A")
    (term,) = a.terms
    a.session.close(timeout=0.0)
    with pytest.raises(zkelect.LeadershipLost, match="closed"):
        term.check()


def test_h03_a_question_ends_within_its_timeout(troupe: Troupe, fake: FakeEnsemble) -> None:
    session = troupe.connect()
    for server in fake.servers:
        server.stop()
    fake.settle()
    with pytest.raises(zkelect.ConnectFailed):
        zkelect.Election(session, PATH).leader(timeout=0.0)
