"""What the doctor may find, and how bad each of it is."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

import attrs

__all__ = ["SEVERITIES", "Code", "Finding", "Severity"]


class Severity(IntEnum):
    """How bad it is; the worst one is the exit status, as monitoring plugins have it.

    Monitoring Plugins Development Guidelines, "Plugin Return Codes": 0 OK, 1 warning, 2 critical.
    """

    NOTE = 0
    """Good to know; nothing has to be done."""
    WARNING = 1
    """Elections work; under a fault, or soon, they will not as promised."""
    CRITICAL = 2
    """No leader, or not the promised one."""


class Code(StrEnum):
    """The name of each finding; docs/cli_doctor.md explains them."""

    NO_SESSION = "no-session"
    CREDENTIALS_REFUSED = "credentials-refused"
    CHROOT_MISSING = "chroot-missing"
    SERVER_DOWN = "server-down"
    SERVER_NOT_SERVING = "server-not-serving"
    SEVERAL_ENSEMBLES = "several-ensembles"
    NO_SPARE_SERVER = "no-spare-server"
    SINGLE_SERVER = "single-server"
    EVEN_VOTERS = "even-voters"
    HOSTS_INCOMPLETE = "hosts-incomplete"
    MIXED_VERSIONS = "mixed-versions"
    UNEQUAL_LIMITS = "unequal-limits"
    UNEQUAL_TICK = "unequal-tick"
    LEAST_BELOW_TWO_TICKS = "least-below-two-ticks"
    WORDS_REFUSED = "words-refused"

    OTHER_TIMEOUT = "other-timeout"
    TIMEOUT_TOO_SMALL = "timeout-too-small"
    TICK_TOO_SMALL = "tick-too-small"
    TICK_NOT_GIVEN = "tick-not-given"
    COMMITS_SLOW = "commits-slow"
    COMMITS_TOO_SLOW = "commits-too-slow"
    PAUSES_LONG = "pauses-long"
    PAUSES_TOO_LONG = "pauses-too-long"
    HOST_SLEEPS = "host-sleeps"
    SLEEP_UNSEEN = "sleep-unseen"
    CLOCK_OFF = "clock-off"

    NO_PERMISSION = "no-permission"
    WORLD_WRITABLE = "world-writable"
    NEVER_STOOD = "never-stood"
    NOBODY_STANDS = "nobody-stands"
    NO_HEIR = "no-heir"
    PAUSED = "paused"
    NOT_IN_OFFICE = "not-in-office"
    LEADER_GONE = "leader-gone"
    ORPHAN = "orphan"
    SECOND_CANDIDATE = "second-candidate"
    RECORD_DAMAGED = "record-damaged"
    RECORD_MISSING = "record-missing"
    MIXED_DIALECTS = "mixed-dialects"
    FOREIGN_CANDIDATES = "foreign-candidates"
    FOREIGN_NODES = "foreign-nodes"
    COUNTER_WORN = "counter-worn"
    COUNTER_EXHAUSTED = "counter-exhausted"
    ROLL_LARGE = "roll-large"
    ROLL_TOO_LARGE = "roll-too-large"
    PAGE_LARGE = "page-large"


_CRITICAL: Final = frozenset(
    {
        Code.NO_SESSION,
        Code.CREDENTIALS_REFUSED,
        Code.CHROOT_MISSING,
        Code.SEVERAL_ENSEMBLES,
        Code.TIMEOUT_TOO_SMALL,
        Code.TICK_TOO_SMALL,
        Code.COMMITS_TOO_SLOW,
        Code.PAUSES_TOO_LONG,
        Code.NO_PERMISSION,
        Code.LEADER_GONE,
        Code.ORPHAN,
        Code.RECORD_DAMAGED,
        Code.COUNTER_EXHAUSTED,
        Code.ROLL_TOO_LARGE,
    }
)
_NOTES: Final = frozenset(
    {
        Code.WORDS_REFUSED,
        Code.TICK_NOT_GIVEN,
        Code.HOST_SLEEPS,
        Code.FOREIGN_CANDIDATES,
    }
)

SEVERITIES: Final[dict[Code, Severity]] = {
    code: Severity.CRITICAL
    if code in _CRITICAL
    else Severity.NOTE
    if code in _NOTES
    else Severity.WARNING
    for code in Code
}
"""Each finding has one severity, whatever it is found on."""


@attrs.frozen
class Finding:
    """One thing that is not as it should be.

    :ivar what: what is the matter, with the value. :ivar advice: what to do.
    :ivar where: the server, path or znode it is about; empty when it is about all.
    """

    code: Code
    what: str
    advice: str
    where: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return SEVERITIES[self.code]
