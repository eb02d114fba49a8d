"""``--at``: an act that is done at a time of the wall clock, by a command that waits for it."""

from __future__ import annotations

import math
import re
import sys
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from zkelect.cli.failures import tell

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["appointed", "until", "written"]

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_FORMS: Final = (
    "HH:MM of this host's clock, +SECONDS, or with date and zone: 2026-12-24T03:00+01:00"
)
_OF_THE_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")
_LONGEST: Final = 7 * 86_400.0
_LATE: Final = 60.0
"""Seconds: a machine that slept through the time does not do it when it wakes."""
_STEP: Final = 1.0


def appointed(function: _Function) -> _Function:
    """Give a command ``--at TIME``, as its argument ``at``: seconds since 1970, or None.

    Refused is what is past, more than seven days away, or shown by this host's clock twice or
    never.
    """
    return click.option(
        "--at",
        metavar="TIME",
        callback=_converted,
        help="Wait until then, and do it then: HH:MM of this host's clock, +SECONDS, or date, time "
        "and zone (2026-12-24T03:00+01:00).",
    )(function)


def _converted(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    try:
        return None if text is None else _instant(text, datetime.now().astimezone())
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def until(instant: float) -> None:
    """Wait for the time; on a terminal the seconds that are left are counted down.

    The clock is looked at again each second, so that it may be set meanwhile.

    :raises click.ClickException: the time has passed unnoticed, since the machine slept.
    """
    try:
        tell(f"waiting until {written(instant)}; Ctrl-C cancels")
        while (left := instant - time.time()) > 0:
            _count(left)
            time.sleep(min(left, _STEP))
    except KeyboardInterrupt:
        _wipe()
        tell("cancelled; nothing was done")
        raise
    _wipe()
    if -left > _LATE:
        raise click.ClickException(
            f"it is {-left:.0f} s too late: this process was not running at {written(instant)}. "
            "Nothing was done"
        )


def _instant(text: str, now: datetime) -> float:
    """Return seconds since 1970.

    :param now: in this host's zone.
    :raises ValueError: the message tells.
    """
    instant = _read(text, now)
    left = instant - now.timestamp()
    if left < 0:
        raise ValueError(f"{text} is past: it is {now:%Y-%m-%d %H:%M:%S} here")
    if left > _LONGEST:
        raise ValueError(f"{text} is more than seven days away: this command would have to wait")
    return instant


def _read(text: str, now: datetime) -> float:
    if text.startswith("+"):
        return now.timestamp() + _seconds(text[1:])
    clock = _OF_THE_CLOCK.fullmatch(text)
    if clock is not None:
        return _next(text, [int(part or 0) for part in clock.groups()], now)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time: say {_FORMS}") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} does not say which zone: say {_FORMS}")
    return moment.timestamp()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"'+{text}' is no time: say {_FORMS}")
    return seconds


def _next(text: str, parts: list[int], now: datetime) -> float:
    """Return when the clock shows this next, today or tomorrow."""
    try:
        today = now.replace(hour=parts[0], minute=parts[1], second=parts[2], microsecond=0)
    except ValueError:
        raise ValueError(f"{text!r} is no time: say {_FORMS}") from None
    local = today.replace(tzinfo=None)
    first, second = _readings(local)
    if max(first, second) < now:
        first, second = _readings(local + timedelta(days=1))
    if first == second:
        return first.timestamp()
    if first.time() != local.time():
        raise ValueError(f"there is no {text} on {first:%Y-%m-%d}: the clocks go forward")
    both = f"{first.isoformat()} or {second.isoformat()}"
    raise ValueError(f"{text} comes twice on {first:%Y-%m-%d}: say {both}")


def _readings(local: datetime) -> tuple[datetime, datetime]:
    """Return what a time of the clock may mean: two times when the clocks are put back or forth."""
    return local.replace(fold=0).astimezone(), local.replace(fold=1).astimezone()


def written(instant: float) -> str:
    """Write a time for people, by this host's clock and zone."""
    return datetime.fromtimestamp(instant).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")


def _count(left: float) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{timedelta(seconds=math.ceil(left))} ", err=True, nl=False)


def _wipe() -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
