"""Terms of office: the timeout that rules, bodies that hang, leaders that cannot serve."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import zkelect
from zkelect.session.clock import SystemClock
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Campaign, Operator, Sentry

T = 2.0
boottime = SystemClock().boottime


# --- H40: the timeout granted ----------------------------------------------------------------


@pytest.fixture(scope="module")
def bounded() -> Iterator[LocalEnsemble]:
    """A server that grants 4 … 10 s."""
    with LocalEnsemble(min_session_timeout=4.0, max_session_timeout=10.0) as started:
        yield started


@pytest.mark.parametrize(("asked", "granted"), [(1.0, 4.0), (400.0, 10.0)])
def test_h40_the_timeout_granted_rules_and_a_warning_tells_both(
    asked: float,
    granted: float,
    bounded: LocalEnsemble,
    path: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with zkelect.connect(bounded.hosts, session_timeout=asked, tick_time=0.2) as session:
        (warning,) = (r for r in caplog.records if r.name.startswith("zkelect"))
        assert warning.levelno == logging.WARNING
        told = warning.getMessage()
        assert f"asked for a session timeout of {asked:g} s" in told
        assert f"granted {granted:g} s" in told
        assert session.timeout == granted
        with zkelect.Election(session, path).campaign(timeout=30.0) as leadership:
            before = leadership.deadline
            while leadership.deadline == before:
                assert not leadership.wait_lost(0.02)
            now = boottime()
            # More than the one asked for could give, and no more than the one granted gives.
            assert min(asked, granted / 4) < leadership.deadline - now < 0.98 * granted


def test_h40_the_timeout_asked_for_is_granted_without_a_word(
    bounded: LocalEnsemble, caplog: pytest.LogCaptureFixture
) -> None:
    with zkelect.connect(bounded.hosts, session_timeout=5.0, tick_time=0.2) as session:
        assert session.timeout == 5.0
    assert [record for record in caplog.records if record.name.startswith("zkelect")] == []


# --- H45: a hang is not a crash ----------------------------------------------------------------


class Hang:
    """Something that hangs until it is let go."""

    def __init__(self) -> None:
        self.begun, self._free = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> bool:
        self.begun.set()
        self._free.wait()
        return True

    def release(self) -> None:
        self._free.set()


@pytest.fixture
def hang() -> Iterator[Hang]:
    hang = Hang()
    yield hang
    hang.release()


@pytest.mark.parametrize("reason", ["stalled", "unhealthy"])
def test_h45_a_deadlocked_body_ends_its_term_and_the_successor_leads(
    reason: str,
    hang: Hang,
    cast: Callable[..., Actor],
    watch: type[Sentry],
    operator: Operator,
    path: str,
    measured: Callable[[str, float, float], None],
) -> None:
    options: dict[str, Any] = {"stall_timeout": 0.5} if reason == "stalled" else {"healthy": hang}
    a, b = cast("A", **options), cast("B")

    def stand() -> None:
        with suppress(zkelect.SessionClosed):  # at the end of the test the body returns
            a.election.run_forever(hang)

    body = threading.Thread(target=stand)
    body.start()
    elected = a.diary.wait("elected")
    sentry = watch(elected.leadership)
    b.queue()
    assert hang.begun.wait(30.0)
    deposed = a.diary.wait("deposed")
    assert deposed.reason == reason
    promised = 0.5 if reason == "stalled" else 4 * T / 3
    measured(f"from elected to {reason}", deposed.at - elected.at, promised)
    # The body hangs on, and may have begun to write while the lease was good: until the end of
    # that lease its znode stays.
    successor = b.diary.wait("granted")
    sentry.relieve()
    assert deposed.at < successor.at
    assert sentry.deadline < successor.at
    assert body.is_alive()
    assert [term["reason"] for term in operator.terms(path)] == [reason]


def test_h45_a_body_that_makes_progress_goes_on(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign]
) -> None:
    a = cast("A", stall_timeout=0.5)
    leadership = campaign(a.election).leadership()
    for _ in range(20):
        leadership.progress()
        assert not leadership.wait_lost(0.1)
    assert leadership.wait_lost(30.0)
    assert leadership.reason == "stalled"


# --- H47: prepare ------------------------------------------------------------------------------


class Phases:
    """Every phase that the page of terms has shown, by candidate."""

    def __init__(self, operator: Operator, path: str) -> None:
        self._seen: list[tuple[str, str]] = []
        operator.kazoo.DataWatch(f"{path}.zkelect/term", self._note)

    def of(self, name: str) -> set[str]:
        return {phase for whose, phase in self._seen if whose == name}

    def _note(self, data: bytes | None, *_: object) -> None:
        if data and (term := json.loads(data)):
            self._seen.append((term["name"], term["phase"]))


def fail(_: zkelect.Leadership) -> None:
    raise OSError("the database is not there")


def lose(leadership: zkelect.Leadership) -> None:
    leadership.end("fenced")


@pytest.mark.parametrize(
    ("how", "reason"), [("fails", "unprepared"), ("hangs", "unprepared"), ("loses", "fenced")]
)
def test_h47_who_cannot_prepare_never_serves_and_the_next_one_leads(
    how: str,
    reason: str,
    hang: Hang,
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    hurdles = {"fails": fail, "hangs": hang, "loses": lose}
    holder = cast("holder")
    holder.lead()
    seen = Phases(operator, path)
    a = cast("A", prepare=hurdles[how], prepare_timeout=0.5).queue()
    b = cast("B").queue()
    holder.election.stop()
    served = b.diary.wait("elected")
    leadership = a.diary.wait("granted").leadership
    assert leadership.reason == reason
    assert leadership.token < served.leadership.token
    assert a.diary.all("elected") == a.diary.all("deposed") == []
    assert a.election.phase is not zkelect.Phase.LEADING
    eventually(lambda: "serving" in seen.of("B"), "B serves")
    assert seen.of("A") == {"preparing"}
    leader = b.election.leader()
    assert leader is not None and leader.name == "B"
    assert [(t["name"], t["reason"]) for t in operator.terms(path)][1:] == [("A", reason)]


def test_h47_leadership_lost_in_prepare_is_never_served(
    hang: Hang, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    """B leads while A still prepares."""
    a, b = cast("A", prepare=hang), cast("B")
    a.start()
    assert hang.begun.wait(30.0)
    seen = Phases(operator, path)
    assert a.election.phase is zkelect.Phase.PREPARING
    b.queue()
    lost = a.diary.wait("granted").leadership
    operator.delete(path, lost.node)
    b.diary.wait("elected")
    assert lost.wait_lost(30.0)  # another connection may hear of the deletion first
    assert lost.reason == "evicted"
    hang.release()
    a.forwarder.wait_for(lambda: len(operator.nodes(path)) == 2)
    assert a.diary.all("elected") == a.diary.all("deposed") == []
    assert seen.of("A") == {"preparing"}
