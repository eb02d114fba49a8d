"""Exit statuses: one for each kind of failure, so that a script can tell them apart.

Those of sysexits.h where it has one; 126 and 127 as shells have them.
"""

from __future__ import annotations

import os
import signal
from typing import Final

from zkelect.errors import (
    AuthenticationFailed,
    EvictionFailed,
    InvalidArgument,
    Lost,
    MonkeyPatched,
    NobodyLeads,
    NotElected,
    PermissionDenied,
    SwitchoverFailed,
    Unreachable,
    ZkelectError,
)

__all__ = [
    "INTERRUPTED",
    "LOST",
    "NOT_DONE",
    "NOT_ELECTED",
    "NOT_EXECUTABLE",
    "NOT_FOUND",
    "NO_PERMISSION",
    "STATUSES",
    "UNAVAILABLE",
    "USAGE",
    "exit_status",
]

NOT_DONE: Final = 1
"""It was refused, or did not come about: the message says why."""
USAGE: Final = os.EX_USAGE
UNAVAILABLE: Final = os.EX_UNAVAILABLE
LOST: Final = os.EX_SOFTWARE
NOT_ELECTED: Final = os.EX_TEMPFAIL
NO_PERMISSION: Final = os.EX_NOPERM
NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
INTERRUPTED: Final = 128 + signal.SIGINT

STATUSES: Final = (
    f"Exit status: 0 done, {NOT_DONE} not done, {USAGE} wrong usage, {UNAVAILABLE} no answer, "
    f"{NO_PERMISSION} no permission, {INTERRUPTED} interrupted."
)
"""What the help says of a command that has no others."""

_STATUSES: Final[tuple[tuple[type[ZkelectError], int], ...]] = (
    (InvalidArgument, USAGE),
    (MonkeyPatched, USAGE),
    (Lost, LOST),
    (NotElected, NOT_ELECTED),
    (PermissionDenied, NO_PERMISSION),
    (AuthenticationFailed, NO_PERMISSION),
    (NobodyLeads, NOT_DONE),
    (SwitchoverFailed, NOT_DONE),
    (EvictionFailed, NOT_DONE),
    (Unreachable, UNAVAILABLE),
)
"""The first kind that fits rules."""


def exit_status(error: ZkelectError) -> int:
    """Return the status to end with because of this error."""
    fitting = (status for kind, status in _STATUSES if isinstance(error, kind))
    return next(fitting, NOT_DONE)
