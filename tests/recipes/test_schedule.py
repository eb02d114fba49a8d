"""Slots of crontab lines: each once, also on the two nights when clocks are set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import zkelect
from zkelect.recipes.schedule import Schedule

HOUR = timedelta(hours=1)
NIGHTLY = Schedule("30 2 * * *", "Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def slots(schedule: Schedule, begin: str, end: str) -> list[datetime]:
    return list(schedule.due(at(begin), at(end), timedelta(days=2)).slots)


# --- H80: the nights of Europe/Berlin ------------------------------------------------------


def test_h80_in_the_autumn_night_a_job_at_half_past_two_has_one_slot() -> None:
    night = slots(NIGHTLY, "2026-10-24T12:00+02:00", "2026-10-25T12:00+01:00")
    assert night == [at("2026-10-25T02:30+02:00")]


@pytest.mark.parametrize("minute", range(0, 60, 5))
def test_h80_from_within_the_second_of_these_hours_it_is_not_due_again(minute: int) -> None:
    within = at("2026-10-25T02:00+01:00") + timedelta(minutes=minute)
    assert NIGHTLY.after(within) == at("2026-10-26T02:30+01:00")


def test_h80_a_job_at_each_half_hour_has_all_of_them_in_the_autumn_night() -> None:
    night = slots(
        Schedule("*/30 * * * *", "Europe/Berlin"),
        "2026-10-25T01:00+02:00",
        "2026-10-25T04:00+01:00",
    )
    assert len(night) == 8
    assert {later - earlier for earlier, later in pairwise(night)} == {HOUR / 2}


def test_h80_in_the_spring_night_a_job_at_half_past_two_has_its_slot_at_three() -> None:
    night = slots(NIGHTLY, "2026-03-28T12:00+01:00", "2026-03-29T12:00+02:00")
    assert night == [at("2026-03-29T03:00+02:00")]


def test_h80_every_second_of_both_nights_is_told_once() -> None:
    each = Schedule("* * * * * *", "Europe/Berlin")
    for begin in (at("2026-10-25T02:59:50+02:00"), at("2026-03-29T01:59:50+01:00")):
        night = each.due(begin, begin + timedelta(seconds=20), HOUR).slots
        assert night == tuple(begin + timedelta(seconds=passed) for passed in range(1, 21))


def test_h80_a_clock_that_is_set_back_makes_no_slot_due_again() -> None:
    each = Schedule("* * * * * *")
    last = at("2026-11-30T12:00:05+00:00")
    due = each.due(last, last - timedelta(seconds=2), HOUR)
    assert (due.slots, due.next) == ((), last + timedelta(seconds=1))


# --- what is due ---------------------------------------------------------------------------


def test_a_slot_is_due_from_its_instant_on() -> None:
    slot = at("2026-11-30T02:30+01:00")
    before, just = (
        NIGHTLY.due(slot - HOUR, slot - timedelta(microseconds=1), HOUR),
        NIGHTLY.due(slot - HOUR, slot, HOUR),
    )
    assert (before.slots, before.next) == ((), slot)
    assert (just.slots, just.next) == ((slot,), slot + 24 * HOUR)


def test_slots_older_than_the_grace_are_missed_and_told_so() -> None:
    slot = at("2026-11-30T02:30+01:00")
    late = NIGHTLY.due(slot - HOUR, slot + 2 * HOUR, HOUR)
    assert (late.slots, late.missed) == ((), True)
    in_time = NIGHTLY.due(slot - HOUR, slot + HOUR, HOUR)
    assert (in_time.slots, in_time.missed) == ((slot,), False)


def test_after_a_long_outage_the_backlog_comes_in_portions() -> None:
    each = Schedule("* * * * * *")
    begin = at("2026-11-30T00:00+00:00")
    now, last, told = begin + HOUR, begin, 0
    while slots := each.due(last, now, 2 * HOUR).slots:
        assert slots[0] == last + timedelta(seconds=1)
        last, told = slots[-1], told + len(slots)
    assert told == 3600


@pytest.mark.parametrize("line", ["", "61 * * * *", "* * * *", "0 0 30 2 *", "@daily", "x"])
def test_a_line_that_never_comes_is_refused(line: str) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="30 2"):
        Schedule(line)


def test_a_zone_that_is_unknown_is_refused() -> None:
    for zone in ("Europe/Atlantis", "../etc/passwd", ""):
        with pytest.raises(zkelect.InvalidArgument, match="Europe/Berlin"):
            Schedule("* * * * *", zone)
