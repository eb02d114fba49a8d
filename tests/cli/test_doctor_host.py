"""Watching a machine: its pauses are those of the clock, whatever the clock is."""

from __future__ import annotations

import pytest

from zkelect.cli.doctor.host import watch_host


class TurnedClock:
    """Goes on by what is slept, and by a pause on top of one of the sleeps."""

    def __init__(self, pauses: dict[int, float], slept: float = 0.0) -> None:
        self.now = 1000.0
        self.sleeps = 0
        self._pauses = pauses
        self._slept = slept

    def boottime(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now - self._slept

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now += seconds + self._pauses.get(self.sleeps, 0.0)


def test_the_longest_pause_is_told() -> None:
    clock = TurnedClock({5: 0.2, 9: 0.7, 12: 0.1})
    host = watch_host(2.0, clock=clock, sleep=clock.sleep)
    assert host.pause == pytest.approx(0.7)
    assert host.measured == pytest.approx(2.0, abs=0.002)


def test_a_host_that_never_pauses_has_none() -> None:
    clock = TurnedClock({})
    host = watch_host(1.0, clock=clock, sleep=clock.sleep)
    assert host.pause == pytest.approx(0.0, abs=1e-6)
    assert host.slept == 0.0


def test_how_long_it_has_slept_is_the_difference_of_its_clocks() -> None:
    clock = TurnedClock({}, slept=12.5)
    assert watch_host(0.01, clock=clock, sleep=clock.sleep).slept == pytest.approx(12.5)


def test_no_time_is_no_look() -> None:
    clock = TurnedClock({})
    assert watch_host(0.0, clock=clock, sleep=clock.sleep).measured == 0.0
    assert clock.sleeps == 0
