"""Deposed: told after every end, exactly once, when everything already says no."""

from __future__ import annotations

import json
import threading
from itertools import cycle
from typing import TYPE_CHECKING, Any

import attrs
import pytest

import zkelect
from zkelect.session.clock import SystemClock
from zkelect.session.gateway import Delete
from zkelect.stores import MemoryFence
from zkelect.testing import expire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Actor, Operator

    from zkelect.testing import LocalEnsemble


class Clock(SystemClock):
    """The machine's clocks, until it seems to have slept."""

    slept = 0.0

    def boottime(self) -> float:
        return super().boottime() + self.slept


@attrs.frozen
class World:
    """What there is to end a leadership with."""

    a: Actor
    operator: Operator
    zookeeper: LocalEnsemble
    path: str
    clock: Clock


# --- the causes --------------------------------------------------------------------------------


def refuse_write(world: World) -> None:
    """Let a store see a higher token, then write."""
    leadership = world.a.diary.wait("elected").leadership
    fence = MemoryFence(domain="test")
    fence.claim(attrs.evolve(leadership.token, czxid=leadership.token.czxid + 1))
    with pytest.raises(zkelect.Fenced), fence.transaction(leadership):
        pass


def raise_generation(world: World) -> None:
    record = f"{world.path}.zkelect"
    fields = json.loads(world.operator.kazoo.get(record)[0])
    fields["generation"] += 1
    world.operator.kazoo.set(record, json.dumps(fields).encode())


def sleep_a_little(world: World) -> None:
    world.clock.slept += 0.2


def evict(world: World) -> None:
    world.operator.delete(world.path, world.a.diary.wait("elected").leadership.node)


def wait(world: World) -> None:
    """The cause comes by itself."""


CAUSES: dict[str, tuple[Callable[[World], object], dict[str, Any]]] = {
    "resigned": (lambda world: world.a.election.resign(), {}),
    "lapsed": (lambda world: world.a.forwarder.cut(), {}),
    "expired": (lambda world: expire(world.a.session, hosts=world.zookeeper.hosts), {}),
    "evicted": (evict, {}),
    "stalled": (wait, {"stall_timeout": 0.5}),
    "unhealthy": (wait, {"healthy": lambda: False, "unhealthy_after": 1}),
    "fenced": (refuse_write, {}),
    "record-changed": (raise_generation, {}),
    "machine-suspended": (sleep_a_little, {}),
    "closed": (lambda world: world.a.session.close(), {}),
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let every session that is opened from here on count on this clock."""
    clock = Clock()
    monkeypatch.setattr("zkelect.session.session.SystemClock", lambda: clock)
    return clock


@pytest.fixture
def make_world(
    cast: Callable[..., Actor],
    operator: Operator,
    zookeeper: LocalEnsemble,
    path: str,
    clock: Clock,
) -> Callable[..., World]:
    def make(**options: Any) -> World:
        return World(cast("A", **options), operator, zookeeper, path, clock)

    return make


class Inquirer:
    """Asks everything there is to ask from inside ``deposed``."""

    def __init__(self, election: zkelect.Election) -> None:
        self._election = election
        self.answers: list[dict[str, Any]] = []

    def elected(self, leadership: zkelect.Leadership) -> None: ...

    def suspended(self, leadership: zkelect.Leadership) -> None: ...

    def deposed(self, leadership: zkelect.Leadership) -> None:
        try:
            checked: object = leadership.check()
        except zkelect.LeadershipLost as lost:
            checked = lost.reason
        self.answers.append(
            {
                "check": checked,
                "remaining": leadership.remaining(),
                "lost": leadership.wait_lost(0.0),
                "phase": self._election.phase,
                "past": leadership.deadline <= SystemClock().boottime(),
            }
        )


@pytest.mark.parametrize("cause", CAUSES)
def test_h11_inside_deposed_everything_says_no(
    cause: str, make_world: Callable[..., World]
) -> None:
    """CAMEL-24457."""
    act, options = CAUSES[cause]
    world = make_world(**options)
    inquirer = Inquirer(world.a.election)
    world.a.listen(inquirer)
    world.a.lead()
    act(world)
    world.a.diary.wait("deposed")
    world.a.session.close()
    first = inquirer.answers[0]
    phase = first.pop("phase")
    assert first == {"check": cause, "remaining": 0.0, "lost": True, "past": True}
    assert phase not in (zkelect.Phase.PREPARING, zkelect.Phase.LEADING)


# --- H12: once for each term -------------------------------------------------------------------


@pytest.mark.parametrize("cause", CAUSES)
def test_h12_deposed_comes_once_after_every_cause(
    cause: str, make_world: Callable[..., World]
) -> None:
    """kubernetes #23731."""
    act, options = CAUSES[cause]
    world = make_world(**options)
    leadership = world.a.lead()
    act(world)
    assert world.a.diary.wait("deposed").reason == cause
    leadership.end("fenced")  # whoever comes later changes nothing
    world.a.session.close()
    world.a.diary.assert_paired()
    assert leadership.reason == cause


def refuse_dialling(a: Actor) -> None:
    a.forwarder.refuse()
    a.forwarder.drop()


def swallow_handshakes(a: Actor) -> None:
    a.forwarder.cut("replies")
    a.forwarder.drop()


FAULTS: dict[str, Callable[[Actor], None]] = {
    "a probe is not delivered": lambda a: a.forwarder.cut("requests"),
    "a probe is not answered": lambda a: a.forwarder.cut("replies"),
    "dialling is refused": refuse_dialling,
    "the handshake is not answered": swallow_handshakes,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_h12_deposed_comes_once_whatever_part_of_renewing_fails(
    fault: str, cast: Callable[..., Actor]
) -> None:
    a = cast("A")
    a.lead()
    FAULTS[fault](a)
    assert a.diary.wait("deposed").reason == "lapsed"
    a.forwarder.accept()
    a.forwarder.heal()
    a.diary.wait("elected", 2)
    a.session.close()
    a.diary.wait("deposed", 2)
    a.diary.assert_paired()


@pytest.mark.parametrize("call", ["multi", "silent_since"])
def test_h12_deposed_comes_once_when_a_call_of_renewing_raises(
    call: str, cast: Callable[..., Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = cast("A")
    a.lead()

    def fail(*_: object) -> None:
        raise MemoryError(call)

    monkeypatch.setattr(a.session.gateway, call, fail)
    assert a.diary.wait("deposed").reason == "lapsed"
    monkeypatch.undo()
    a.diary.wait("elected", 2)
    a.session.close()
    a.diary.wait("deposed", 2)
    a.diary.assert_paired()


def test_what_fails_on_kazoos_thread_is_asked_again(
    cast: Callable[..., Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the candidate would wait for ever for the end of its own znode."""
    a = cast("A")
    a.lead()
    commit = a.session.gateway.multi

    def fail_once(operations: Sequence[Any], *rest: Any, **options: Any) -> None:
        if any(isinstance(each, Delete) for each in operations):
            monkeypatch.undo()
            raise MemoryError("while leaving")
        commit(operations, *rest, **options)

    monkeypatch.setattr(a.session.gateway, "multi", fail_once)
    a.election.resign()
    a.diary.wait("elected", 2)
    assert a.session.gateway.multi == commit


class Raising:
    """Callbacks of which one raises."""

    def __init__(self, which: str) -> None:
        self._which = which

    def elected(self, leadership: zkelect.Leadership) -> None:
        self._told("elected")

    def suspended(self, leadership: zkelect.Leadership) -> None:
        self._told("suspended")

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self._told("deposed")

    def _told(self, what: str) -> None:
        if what == self._which:
            raise RuntimeError(f"{what} of the user's")


@pytest.mark.parametrize("which", ["elected", "suspended", "deposed"])
def test_h12_a_callback_that_raises_is_heard_and_harms_nothing(
    which: str, cast: Callable[..., Actor], caplog: pytest.LogCaptureFixture
) -> None:
    a = cast("A", session_timeout=4.0)
    raising = Raising(which)
    with a.election.listen(raising):
        leadership = a.lead()
        a.forwarder.drop()
        a.diary.wait("suspended")
        a.election.resign()
        a.diary.wait("elected", 2)
        a.session.close()
        a.diary.wait("deposed", 2)
    a.diary.assert_paired()
    assert leadership.reason == "resigned"
    assert f"Raising.{which} raised" in caplog.text


def test_h12_deposed_comes_once_when_the_body_raises(cast: Callable[..., Actor]) -> None:
    a = cast("A")

    def lead(_: zkelect.Leadership) -> None:
        raise RuntimeError("of the user's")

    for face in (a.election.run, a.election.run_forever):
        with pytest.raises(RuntimeError, match="of the user's"):
            face(lead)
    with pytest.raises(RuntimeError, match="of the user's"), a.election.campaign() as leadership:
        lead(leadership)
    a.session.close()
    assert [note.reason for note in a.diary.all("deposed")] == ["resigned"] * 3
    a.diary.assert_paired()


@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("unprepared", {"prepare": lambda _: 1 / 0}),
        ("ineligible", {"eligible": cycle([True, False]).__next__}),
    ],
)
def test_h12_who_never_served_is_never_told_of_its_end(
    reason: str, options: dict[str, Any], cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    a = cast("A", **options).start()
    a.forwarder.wait_for(lambda: len(operator.terms(path)) >= 2)
    a.session.close()
    assert {term["reason"] for term in operator.terms(path)} == {reason}
    assert a.diary.all("elected") == a.diary.all("deposed") == []


def test_h12_a_readiness_check_that_raises_once_does_not_end_the_standing(
    cast: Callable[..., Actor],
) -> None:
    answers = iter([ZeroDivisionError()])

    def eligible() -> bool:
        for error in answers:
            raise error
        return True

    a = cast("A", eligible=eligible)
    a.lead()


# --- H13: one worker ---------------------------------------------------------------------------


class Crew:
    """Workers, of which there must never be two. Each takes a while to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cleaned = threading.Event()
        self._working = 0
        self.most = 0
        self.tokens: list[zkelect.Token] = []

    def work(self, leadership: zkelect.Leadership) -> None:
        self._begin(leadership.token)
        leadership.wait_lost()
        self._cleaned.wait(0.5)
        self._end()

    def _begin(self, token: zkelect.Token) -> None:
        with self._lock:
            self._working += 1
            self.most = max(self.most, self._working)
            self.tokens.append(token)

    def _end(self) -> None:
        with self._lock:
            self._working -= 1


class Employer:
    """Callbacks that hire a worker when elected, and see it off when deposed."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._worker = threading.Thread()

    def elected(self, leadership: zkelect.Leadership) -> None:
        self._worker = threading.Thread(target=self._crew.work, args=(leadership,))
        self._worker.start()

    def suspended(self, leadership: zkelect.Leadership) -> None: ...

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self._worker.join()


@pytest.mark.parametrize("face", ["run_forever", "callbacks"])
def test_h13_five_losses_and_one_worker_at_any_time(
    face: str,
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    zookeeper: LocalEnsemble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """mesos/chronos #371."""
    monkeypatch.setattr("random.random", lambda: 0.0)  # no hold-down: lead again at once
    a = cast("A")
    crew, stop = Crew(), threading.Event()
    standing = threading.Thread(target=a.election.run_forever, args=(crew.work, stop))
    with a.election.listen(Employer(crew) if face == "callbacks" else Inquirer(a.election)):
        if face == "callbacks":
            a.start()
        else:
            standing.start()
        for loss in range(1, 6):
            leadership = a.diary.wait("elected", loss).leadership
            if loss % 2:
                operator.delete(path, leadership.node)
            else:
                expire(a.session, hosts=zookeeper.hosts)
        a.diary.wait("elected", 6)
        stop.set()
        if face == "run_forever":
            standing.join()
        a.session.close()
    assert crew.most == 1
    assert len(crew.tokens) == 6
    assert crew.tokens == sorted(crew.tokens)
    a.diary.assert_paired()
