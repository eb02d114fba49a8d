"""The clocks: forward only, and the sleep of a machine is told once."""

from __future__ import annotations

import sys
import time

import attrs
import pytest

from zkelect.session.clock import SLEPT, SleepDetector, SystemClock


@attrs.define
class FakeClock:
    boot: float = 1000.0
    mono: float = 400.0

    def boottime(self) -> float:
        return self.boot

    def monotonic(self) -> float:
        return self.mono

    def pass_by(self, awake: float, *, asleep: float = 0.0) -> None:
        self.boot += awake + asleep
        self.mono += awake


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def detector(clock: FakeClock) -> SleepDetector:
    return SleepDetector(clock)


def test_time_that_passes_awake_is_no_sleep(clock: FakeClock, detector: SleepDetector) -> None:
    for _ in range(1000):
        clock.pass_by(3600.0)
        assert not detector.slept()


def test_h17_a_sleep_is_told_once(clock: FakeClock, detector: SleepDetector) -> None:
    clock.pass_by(5.0, asleep=60.0)
    assert detector.slept()
    assert not detector.slept()
    clock.pass_by(5.0, asleep=60.0)
    assert detector.slept()


@pytest.mark.parametrize(("asleep", "told"), [(SLEPT * 0.9, False), (SLEPT * 1.1, True)])
def test_the_least_sleep_that_counts(
    clock: FakeClock, detector: SleepDetector, asleep: float, told: bool
) -> None:
    clock.pass_by(5.0, asleep=asleep)
    assert detector.slept() is told


def test_what_was_slept_before_it_looks_does_not_count() -> None:
    assert not SleepDetector(FakeClock(boot=10_000.0, mono=1.0)).slept()


def test_a_monotonic_clock_that_runs_ahead_is_no_sleep(
    clock: FakeClock, detector: SleepDetector
) -> None:
    clock.mono += 5.0
    assert not detector.slept()


def test_the_system_clocks_go_forward() -> None:
    clock = SystemClock()
    for read in (clock.boottime, clock.monotonic):
        first = read()
        assert read() >= first


@pytest.mark.parametrize("reading", range(3))
def test_on_linux_the_boot_clock_counts_sleep_too(reading: int) -> None:
    """Without CLOCK_BOOTTIME both clocks are one, and no sleep is ever told."""
    clock = SystemClock()
    known = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    before = time.clock_gettime(known)
    assert before <= clock.boottime() <= time.clock_gettime(known)


def test_without_a_boot_clock_the_monotonic_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    before = time.monotonic()
    assert before <= SystemClock().boottime() <= time.monotonic()
