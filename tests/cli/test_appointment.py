"""``--at``: what is understood as a time to come, and what is refused."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from zkelect.cli import appointment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
"""Central European time as POSIX writes it, so that no zone database is needed."""


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have this host's clock show Central European time."""
    monkeypatch.setenv("TZ", BERLIN)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def read(berlin: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Read a time at a moment of UTC; return what is meant, in UTC, or the message."""

    def at(now: str, text: str) -> str:
        present = datetime.fromisoformat(now).replace(tzinfo=UTC)

        class Frozen(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return present.astimezone()

        monkeypatch.setattr(appointment, "datetime", Frozen)
        told = CliRunner().invoke(_command, ["--at", text])
        return told.output.strip().removeprefix("Usage: -command").rpartition("Error: ")[2]

    return at


@click.command()
@appointment.appointed
def _command(at: float | None) -> None:
    moment = "never" if at is None else datetime.fromtimestamp(at, UTC).isoformat()
    click.echo(moment)


def test_it_may_be_left_out() -> None:
    assert CliRunner().invoke(_command, []).output == "never\n"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("+0", "2026-11-30T14:00:00+00:00"),
        ("+90", "2026-11-30T14:01:30+00:00"),
        ("+0.5", "2026-11-30T14:00:00.500000+00:00"),
        ("15:30", "2026-11-30T14:30:00+00:00"),  # 14:00 UTC is 15:00 there
        ("15:30:05", "2026-11-30T14:30:05+00:00"),
        ("15:00", "2026-11-30T14:00:00+00:00"),
        ("03:00", "2026-12-01T02:00:00+00:00"),
        ("14:59", "2026-12-01T13:59:00+00:00"),
        ("2026-12-01T03:00+01:00", "2026-12-01T02:00:00+00:00"),
        ("2026-12-01T03:00Z", "2026-12-01T03:00:00+00:00"),
    ],
)
def test_a_time_to_come(text: str, meant: str, read: Callable[[str, str], str]) -> None:
    assert read("2026-11-30T14:00:00", text) == meant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-11-30T13:59Z", "is past: it is 2026-11-30 15:00:00 here"),
        ("+604801", "is more than seven days away"),
        ("2026-12-24T03:00", "does not say which zone"),
        ("24:00", "is no time: say HH:MM"),
        ("3:00", "is no time: say HH:MM"),
        ("+", "is no time"),
        ("+-5", "is no time"),
        ("+nan", "is no time"),
        ("+inf", "is no time"),
        ("tomorrow", "is no time"),
        ("", "is no time"),
    ],
)
def test_what_is_no_time_to_come(text: str, why: str, read: Callable[[str, str], str]) -> None:
    assert why in read("2026-11-30T14:00:00", text)


def test_a_time_that_comes_twice_in_the_autumn_night_is_refused_with_both(
    read: Callable[[str, str], str],
) -> None:
    both = "say 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"
    for now in ("2026-10-24T20:00:00", "2026-10-25T00:10:00", "2026-10-25T00:40:00"):
        assert f"02:30 comes twice on 2026-10-25: {both}" in read(now, "02:30")
    assert read("2026-10-25T00:40:00", "2026-10-25T02:30:00+01:00") == "2026-10-25T01:30:00+00:00"
    assert read("2026-10-25T01:40:00", "02:30") == "2026-10-26T01:30:00+00:00"


def test_a_time_that_the_spring_night_leaves_out_is_refused(
    read: Callable[[str, str], str],
) -> None:
    assert "there is no 02:30 on 2026-03-29" in read("2026-03-28T20:00:00", "02:30")
    assert read("2026-03-29T04:00:00", "02:30") == "2026-03-30T00:30:00+00:00"


class Clock:
    """A wall clock that goes on only while somebody sleeps."""

    def __init__(self, now: float, *, jump: float = 0.0) -> None:
        self.now = now
        self._jump = jump

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self._jump


def test_it_waits_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1000.0)
    monkeypatch.setattr(appointment, "time", clock)
    appointment.until(1007.5)
    assert clock.now == 1007.5


def test_a_machine_that_slept_through_the_time_does_nothing_when_it_wakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(appointment, "time", Clock(1000.0, jump=3600.0))
    with pytest.raises(click.ClickException, match=r"3591 s too late.*Nothing was done"):
        appointment.until(1010.0)


def test_on_a_terminal_the_rest_is_counted_down(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(appointment, "time", Clock(1000.0))
    appointment.until(1002.0)
    assert "0:00:02" not in capsys.readouterr().err
    monkeypatch.setattr(appointment, "time", Clock(1000.0))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    appointment.until(1002.0)
    told = capsys.readouterr().err
    assert told.index("0:00:02") < told.index("0:00:01") < told.rindex("\x1b[K")


def test_the_zone_of_the_host_is_told(
    berlin: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    then = datetime(2026, 11, 30, 3, tzinfo=timezone(timedelta(hours=1))).timestamp()
    monkeypatch.setattr(appointment, "time", Clock(then))
    appointment.until(then)
    assert "waiting until 2026-11-30 03:00:00 +0100" in capsys.readouterr().err
