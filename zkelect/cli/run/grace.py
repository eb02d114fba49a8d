"""How long before the end of the lease the command is asked to end."""

from __future__ import annotations

import math
from typing import Final

from zkelect.cli.run.keeper.plan import KILLING
from zkelect.core.lease import pace_of, steady_lease
from zkelect.errors import InvalidArgument

__all__ = ["choose_grace"]

_USUAL: Final = 1.0
_PART: Final = 4


def choose_grace(given: float | None, timeout: float, tick: float | None) -> float:
    """Return the seconds from TERM to KILL.

    In good times two renewals may fail before the command is asked to end.

    :param given: None: a second, at most a quarter of what is possible.
    :param timeout: session timeout. :param tick: the servers' tickTime, if it is known.
    :raises InvalidArgument: the lease has no room for it.
    """
    longest = steady_lease(timeout, tick) - 2 * pace_of(timeout) - KILLING
    if given is None:
        return max(min(_USUAL, longest / _PART), 0.0)
    if not 0 <= given <= longest:
        most = math.floor(longest * 100) / 100
        raise InvalidArgument(
            "grace",
            given,
            f"seconds from 0 to {max(most, 0):g}, which a lease of a session timeout of "
            f"{timeout:g} s has to spare" + (" (more if tick_time is configured)" * (tick is None)),
        )
    return given
