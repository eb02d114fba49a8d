"""When a job is due: slots of a crontab line, in a time zone. Pure: what time it is, is given.

A slot is an instant that a schedule names; each has one name, its instant in UTC, whatever the
clocks of the hosts say and however often a wall clock shows it. On the night when clocks go
back, a job at 02:30 has one slot, the first 02:30, while one at every half hour has them all; on
the night when they go forward, a job at 02:30 has its slot at 03:00 (as Debian's cron has it;
that is why cronsim reads the lines here: others run 02:30 twice).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs
from cronsim import CronSim, CronSimError

import zkelect

__all__ = ["Due", "Schedule"]

_MOST: Final = 1000
"""So many slots that are due are told at a time; the next look finds the others."""


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as unknown:
        expected = "a time zone's name such as 'Europe/Berlin' (and the system's tzdata)"
        raise zkelect.InvalidArgument("zone", name, expected) from unknown


@attrs.frozen(kw_only=True)
class Due:
    """What a schedule has to say now.

    :ivar slots: those to be run, oldest first.
    :ivar missed: whether there were others that are too old to be run.
    :ivar next: the first one that is still to come.
    """

    slots: tuple[datetime, ...]
    missed: bool
    next: datetime


@attrs.frozen
class Schedule:
    """A crontab line in a time zone.

    :param line: five fields as crontab(5) has them, or six, the first for seconds.
    :param zone: whose wall clock the fields are of.
    :raises zkelect.InvalidArgument: it cannot be read, or never comes.
    """

    line: str
    zone: str = "UTC"

    def __attrs_post_init__(self) -> None:
        """Refuse what could only fail when it is due."""
        self.after(datetime(2000, 1, 1, tzinfo=UTC))

    def after(self, instant: datetime) -> datetime:
        """Return the first slot behind an instant, in UTC.

        :param instant: with a time zone, whichever.
        """
        return next(self._slots(instant))

    def due(self, last: datetime, now: datetime, grace: timedelta) -> Due:
        """Return the slots after the last one that was begun, up to now.

        :param last: that slot, or where to begin; it is never told again, also when a clock
            has been set back. :param grace: a slot that is older than this is missed.
        """
        oldest = max(last, now - grace - timedelta(microseconds=1))
        slots: list[datetime] = []
        for slot in self._slots(oldest):
            if slot > now or len(slots) == _MOST:
                return Due(slots=tuple(slots), missed=self.after(last) <= oldest, next=slot)
            slots.append(slot)
        raise AssertionError("a schedule has no end")

    def _slots(self, instant: datetime) -> Iterator[datetime]:
        expected = "a crontab line such as '30 2 * * *' that comes true some day"
        try:
            for slot in CronSim(self.line, instant.astimezone(_zone(self.zone))):
                # Asked within the second 02:15 of a night, cronsim tells the first 02:30.
                if slot.astimezone(UTC) > instant:
                    yield slot.astimezone(UTC)
        except CronSimError as wrong:
            raise zkelect.InvalidArgument("line", self.line, f"{expected} ({wrong})") from wrong
        raise zkelect.InvalidArgument("line", self.line, expected)
