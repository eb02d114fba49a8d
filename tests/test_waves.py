"""How a crowd comes back."""

from __future__ import annotations

from collections import Counter

import pytest

from zkelect.core.waves import WAVE, Waves

T = 10.0


def rests(crowd: int, chance: float = 0.5) -> list[float]:
    waves = Waves(T, crowd)
    return [waves.rest(chance) for _ in range(crowd)]


@pytest.mark.parametrize("crowd", [0, 1, 2, WAVE])
def test_who_is_one_of_few_comes_soon(crowd: int) -> None:
    waves = Waves(T, crowd)
    assert [waves.rest(chance) for chance in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("crowd", [WAVE + 1, 1000, 10_000, 100_000])
def test_a_crowd_comes_in_waves_and_within_a_session_timeout(crowd: int) -> None:
    together = Counter(rests(crowd))
    assert max(together.values()) == WAVE
    assert len(together) == -(-crowd // WAVE)
    assert max(rests(crowd, chance=1.0)) <= T


def test_the_waves_of_a_crowd_do_not_overlap() -> None:
    earliest, latest = rests(10_000, chance=0.0), rests(10_000, chance=1.0)
    assert earliest == sorted(earliest)
    assert latest[0] == pytest.approx(earliest[WAVE])


def test_two_waves_follow_one_another_as_closely_as_they_may() -> None:
    assert rests(2 * WAVE, chance=1.0)[-1] == pytest.approx(T / 5)


def test_who_asks_again_begins_with_the_first_wave() -> None:
    waves = Waves(T, WAVE + 1)
    first = [waves.rest(0.0) for _ in range(2 * WAVE)]
    assert [waves.rest(0.0) for _ in range(2 * WAVE)] == first
