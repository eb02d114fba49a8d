"""Controls: libraries with one known mistake, each with a script that brings it to light.

The checker must find each of them out by a promise that the mistake breaks. One that it
does not find out in five tries is a failure of the suite: then it could not fail.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from chaos.plan import Step
from chaos.roles import CONTROL
from chaos.stage import SESSION_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["CONTROLS", "TRIES", "Control", "broken"]

TRIES: Final = 5

_STEADY: Final = {"sleeps": 0.0, "resigns": 0.0, "is_deleted": 0.0, "is_closed": 0.0}
_OFTEN_LATE: Final = {"sleeps": 0.4, "resigns": 0.0, "is_deleted": 0.2, "longest_sleep": 1.5}


@attrs.frozen(kw_only=True)
class Control:
    """One mistake.

    :ivar found_by: the promises of which at least one must be found broken.
    :ivar seed: known to do it. :ivar steps: the script. :ivar habits: of the leaders.
    """

    found_by: frozenset[str]
    seed: int
    steps: Sequence[Step]
    habits: Mapping[str, Any] = attrs.field(factory=dict)


def _script(kind: str, times: int, seconds: float, operations: int = 4) -> list[Step]:
    return [
        Step(operations=operations, patience=10.0, kinds=(kind,), seconds=seconds, choice=str(n))
        for n in range(times)
    ]


CONTROLS: Final[Mapping[str, Control]] = {
    "fence off": Control(
        found_by=frozenset({"I1", "I2", "I7"}),
        seed=1,
        steps=_script("black hole", 3, 1.5 * SESSION_TIMEOUT),
        habits=_OFTEN_LATE,
    ),
    "lease by ping": Control(
        found_by=frozenset({"I3", "I4"}),
        seed=1,
        steps=_script("deaf server", 2, 2 * SESSION_TIMEOUT),
        habits=_STEADY,
    ),
    "lease by last acknowledged write": Control(
        found_by=frozenset({"I3", "I4"}),
        seed=1,
        steps=_script("acknowledged late", 4, 1.25 * SESSION_TIMEOUT),
        habits=_STEADY,
    ),
    "claim after read": Control(
        found_by=frozenset({"I7"}),
        seed=1,
        steps=_script("black hole", 3, 1.5 * SESSION_TIMEOUT),
        habits={**_OFTEN_LATE, "claims_late": 0.5},
    ),
}
"""By the names by which the processes of a control break their library."""


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Let the processes that are started in this block break their library so."""
    os.environ[CONTROL] = name
    try:
        yield
    finally:
        del os.environ[CONTROL]
