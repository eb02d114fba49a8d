"""The lease rule: its figures, its edges, and a slow transcription that it must agree with."""

from __future__ import annotations

import math
import pickle
from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.lease import (
    GAP,
    SLACK,
    VOID,
    Lease,
    pace_of,
    patience_of,
    smallest_timeout,
    steady_lease,
)

TICK: Final = 2.0
TIMEOUT: Final = 10.0
SPAN: Final = 1.01 * TICK / 2 + SLACK


def connected(
    timeout: float = TIMEOUT, tick: float | None = TICK, *, hops: int = 1, at: float = 0.0
) -> Lease:
    lease = Lease(tick=tick, hops=hops)
    lease.connect(at, timeout)
    return lease


def probe(lease: Lease, asked: float, answered: float) -> None:
    lease.ask(asked)
    lease.answer(answered)


def left_after(timeout: float, tick: float | None, *, probes: int = 60, hops: int = 1) -> float:
    """Return the lease left at the last answer, on a network that takes no time."""
    lease = connected(timeout, tick, hops=hops)
    at = 0.0
    for _ in range(probes):
        at += pace_of(timeout)
        probe(lease, at, at)
    return lease.deadline - at


# --- the figures that are promised -----------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "tick", "left"),
    [
        (10.0, 2.0, 7.08),
        (10.0, None, 5.75),
        (0.4, 0.2, -0.14),
        (0.8, 0.2, 0.25),
        (1.0, 0.2, 0.45),
        (2.0, 0.2, 1.38),
    ],
)
def test_so_much_is_left_at_each_answer(timeout: float, tick: float | None, left: float) -> None:
    assert left_after(timeout, tick) == pytest.approx(left, abs=0.006)


@pytest.mark.parametrize("timeout", [0.8, 1.0, 2.0, 4.0, 10.0, 30.0, 120.0])
@pytest.mark.parametrize("tick", [None, 0.2])
def test_the_steady_lease_is_what_the_rule_leaves(timeout: float, tick: float | None) -> None:
    pace = pace_of(timeout)
    assert steady_lease(timeout, tick) == pytest.approx(left_after(timeout, tick), abs=pace / 1e6)


@pytest.mark.parametrize("tick", [None, 0.2, 0.5, 2.0, 3.0])
def test_the_smallest_timeout_keeps_a_quarter_and_less_does_not(tick: float | None) -> None:
    smallest = smallest_timeout(tick)
    assert steady_lease(smallest, tick) >= smallest / 4
    for tenths in range(1, round(smallest * 10)):
        assert steady_lease(tenths / 10, tick) < tenths / 40


@pytest.mark.parametrize("tick", [None, 0.2, 0.5, 2.0, 3.0])
def test_every_longer_timeout_keeps_a_quarter_too(tick: float | None) -> None:
    smallest = round(smallest_timeout(tick) * 10)
    for tenths in range(smallest, 1200):
        assert steady_lease(tenths / 10, tick) >= tenths / 40


def test_probes_keep_a_fifteenth_but_never_less_than_the_gap() -> None:
    assert pace_of(30.0) == 2.0
    assert pace_of(0.3) == GAP == pytest.approx(0.12)
    assert patience_of(10.0) == 2.0


# --- one answer at a time --------------------------------------------------------------------


def test_a_connect_response_alone_proves_nothing() -> None:
    assert connected().deadline == -math.inf


def test_the_first_answer_proves_the_handshake() -> None:
    lease = connected(at=100.0)
    probe(lease, 100.5, 100.6)
    assert lease.deadline == pytest.approx(100.0 + 9.8 - 0.05)


def test_the_fourth_answer_is_the_first_that_can_prove_a_probe() -> None:
    """f(k) lies before k-2; probe 0 counts once probe 1 was sent late enough after its answer."""
    lease = connected()
    probe(lease, 1.0, 1.1)
    probe(lease, 1.101 + SPAN, 3.0)
    probe(lease, 3.2, 3.3)
    assert lease.deadline == pytest.approx(9.75)
    probe(lease, 3.5, 3.6)
    assert lease.deadline == pytest.approx(1.0 + 9.75)


def test_an_answer_within_the_span_proves_nothing_yet() -> None:
    lease = connected()
    probe(lease, 1.0, 1.1)
    probe(lease, 1.099 + SPAN, 3.0)
    probe(lease, 3.2, 3.3)
    probe(lease, 3.5, 3.6)
    assert lease.deadline == pytest.approx(9.75)


def test_it_counts_from_the_request_not_from_the_answer() -> None:
    lease = connected()
    for number in range(6):
        probe(lease, 10.0 * number, 10.0 * number + 5.0)
    assert lease.deadline == pytest.approx(20.0 + 9.75)


def test_two_hops_prove_one_probe_further_back() -> None:
    lease = connected(hops=2)
    for number in range(8):
        probe(lease, 10.0 * number, 10.0 * number + 0.1)
    assert lease.deadline == pytest.approx(10.0 + 9.75), "f(7) is 4, f(4) is 1"


def test_an_unanswered_probe_proves_nothing_and_the_next_must_wait() -> None:
    lease = connected()
    lease.ask(1.0)
    assert lease.pending
    assert lease.deadline == -math.inf
    with pytest.raises(ValueError, match="only one at a time"):
        lease.ask(2.0)


def test_an_answer_without_a_probe_is_an_error() -> None:
    lease = connected()
    with pytest.raises(ValueError, match="no probe is under way"):
        lease.answer(1.0)
    probe(lease, 1.0, 1.1)
    with pytest.raises(ValueError, match="no probe is under way"):
        lease.answer(1.2)


def test_a_failed_probe_is_no_link() -> None:
    failing, plain = connected(), connected()
    for number in range(8):
        at = 2.0 * number
        probe(failing, at, at + 0.1)
        probe(plain, at, at + 0.1)
        failing.ask(at + 1.0)
        failing.discard()
    assert not failing.pending
    assert failing.deadline == plain.deadline


def test_a_young_chain_on_an_old_connection_is_stale() -> None:
    """Its next answer would prove the handshake, which is too long ago; a new link proves more."""
    lease = connected(at=100.0)
    assert not lease.stale(100.0 + 9.74)
    assert lease.stale(100.0 + 9.76)
    for number in range(3):
        probe(lease, 101.0 + number, 101.5 + number)
    assert lease.stale(100.0 + 9.76)
    probe(lease, 109.0, 109.1)
    assert not lease.stale(200.0)


def test_discarding_nothing_is_harmless() -> None:
    lease = connected()
    probe(lease, 1.0, 1.1)
    lease.discard()
    assert lease.deadline == pytest.approx(9.75)


# --- connections and timeouts ------------------------------------------------------------------


def test_a_new_connection_starts_a_new_chain() -> None:
    lease = connected()
    for number in range(8):
        probe(lease, 2.0 * number, 2.0 * number + 0.1)
    before = lease.deadline
    lease.ask(16.0)
    lease.connect(17.0, TIMEOUT)
    assert not lease.pending
    assert lease.deadline == before
    probe(lease, 17.1, 17.2)
    assert lease.deadline == pytest.approx(17.0 + 9.75)


def test_a_lagging_handshake_never_lowers_what_is_proven() -> None:
    lease = connected()
    for number in range(12):
        probe(lease, 2.0 * number, 2.0 * number + 0.1)
    before = lease.deadline
    lease.connect(1.0, TIMEOUT)
    probe(lease, 23.0, 23.1)
    assert lease.deadline == before


def test_h19_a_smaller_timeout_shrinks_the_lease_at_once() -> None:
    lease = connected()
    for number in range(8):
        probe(lease, 2.0 * number, 2.0 * number + 0.1)
    lease.connect(14.5, 3.0)
    assert lease.deadline == pytest.approx(14.5 + 0.98 * 3.0 - 0.05)


def test_h19_a_larger_timeout_never_counts() -> None:
    lease = connected(3.0)
    lease.connect(5.0, 10.0)
    probe(lease, 5.1, 5.2)
    assert lease.timeout == 3.0
    assert lease.deadline == pytest.approx(5.0 + 0.98 * 3.0 - 0.05)


def test_a_smaller_timeout_never_raises_the_deadline() -> None:
    lease = connected()
    lease.connect(100.0, 3.0)
    assert lease.deadline == -math.inf


@pytest.mark.parametrize("tick", [None, TICK])
def test_a_session_whose_timeout_is_not_known_gets_no_lease(tick: float | None) -> None:
    lease = Lease(tick=tick)
    for number in range(8):
        probe(lease, 10.0 * number, 10.0 * number + 0.1)
    assert lease.deadline == -math.inf


def test_void_is_final() -> None:
    lease = connected()
    lease.ask(1.0)
    lease.void()
    lease.answer(1.1)
    lease.connect(2.0, TIMEOUT)
    for number in range(8):
        probe(lease, 10.0 * number, 10.0 * number + 0.1)
    assert lease.deadline == -math.inf
    assert VOID.deadline == -math.inf


def test_a_renewed_lease_has_nothing_proven_and_remembers_the_smallest_timeout() -> None:
    lease = connected(3.0, hops=2)
    probe(lease, 0.1, 0.2)
    renewed = lease.renewed()
    assert (renewed.deadline, renewed.timeout) == (-math.inf, 3.0)
    renewed.connect(5.0, 10.0)
    assert renewed.timeout == 3.0


# --- the slow transcription --------------------------------------------------------------------

Connect = Literal["connect"]


class SlowRule:
    """The rule as it is written down: lists, and f(k) by looking at every j."""

    def __init__(self, tick: float | None, hops: int) -> None:
        self.tick, self.hops = tick, hops
        self.deadline = -math.inf
        self.timeout = math.inf
        self.s_connect = -math.inf
        self.s: list[float] = []
        self.a: list[float] = []

    def connect(self, started: float, timeout: float) -> None:
        self.s, self.a, self.s_connect = [], [], started
        if timeout < self.timeout:
            self.timeout = timeout
            self.deadline = min(self.deadline, started + 0.98 * timeout - 0.05)

    def answer(self, asked: float, answered: float) -> None:
        self.s.append(asked)
        self.a.append(answered)
        touched = self.f(len(self.s) - 1)
        if self.hops == 2 and touched != "connect":
            touched = self.f(touched)
        base = self.s_connect if touched == "connect" else self.s[touched]
        self.deadline = max(self.deadline, base + 0.98 * self.timeout - 0.05)

    def f(self, k: int) -> int | Connect:
        tau = self.timeout / 2 if self.tick is None else self.tick
        span = 1.01 * tau / 2 + SLACK  # added up first, so that both round alike
        late_enough = [j for j in range(k - 2) if self.a[j] <= self.s[k - 2] - span]
        return max(late_enough, default="connect", key=int)


delays = st.integers(0, 3000).map(lambda milliseconds: milliseconds / 1000)
kinds = st.sampled_from([*["probe"] * 20, "failed", "failed", "connect"])
acts = st.tuples(kinds, delays, delays, st.sampled_from([2.0, 4.0, 10.0]))


@given(
    tick=st.sampled_from([None, 0.2, 2.0]),
    hops=st.sampled_from([1, 2]),
    course=st.lists(acts, min_size=12, max_size=60),
)
def test_it_agrees_with_the_slow_transcription(
    tick: float | None, hops: int, course: list[tuple[str, float, float, float]]
) -> None:
    lease, slow = connected(tick=tick, hops=hops), SlowRule(tick, hops)
    slow.connect(0.0, TIMEOUT)
    now = 0.0
    for kind, delay, round_trip, timeout in course:
        now += delay
        if kind == "connect":
            lease.connect(now, timeout)
            slow.connect(now, timeout)
            continue
        lease.ask(now)
        asked, now = now, now + round_trip
        if kind == "probe":
            lease.answer(now)
            slow.answer(asked, now)
        else:
            lease.discard()
        assert lease.deadline == pytest.approx(slow.deadline)
    assert lease.timeout == slow.timeout


@given(
    hops=st.sampled_from([1, 2]),
    course=st.lists(st.tuples(delays, delays), min_size=4, max_size=60),
)
def test_it_never_counts_from_a_request_whose_touch_may_still_be_under_way(
    hops: int, course: list[tuple[float, float]]
) -> None:
    """At answer k, nothing answered later than the span before k-2 was sent is evidence."""
    lease = connected(hops=hops)
    sent: list[float] = []
    answered: list[float] = []
    now = 0.0
    for delay, round_trip in course:
        sent.append(now + delay)
        answered.append(sent[-1] + round_trip)
        now = answered[-1]
        probe(lease, sent[-1], answered[-1])
        limit = sent[-3] - SPAN if len(sent) > 3 else 0.0
        evidence = [s for s, a in zip(sent[:-3], answered[:-3], strict=True) if a <= limit]
        assert lease.deadline <= max(evidence, default=0.0) + 0.98 * TIMEOUT - 0.05 + 1e-9


@given(course=st.lists(st.tuples(delays, delays), max_size=60))
def test_on_one_connection_the_deadline_never_falls(course: list[tuple[float, float]]) -> None:
    lease = connected()
    now, before = 0.0, lease.deadline
    for delay, round_trip in course:
        probe(lease, now + delay, now + delay + round_trip)
        now += delay + round_trip
        assert lease.deadline >= before
        before = lease.deadline


def test_a_long_life_needs_little_memory() -> None:
    lease = connected()
    for number in range(10_000):
        probe(lease, number / 2, number / 2 + 0.01)
    assert len(pickle.dumps(lease)) < 1000
