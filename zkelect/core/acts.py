"""What operators have done to an election, for the history: who, what, when and why."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import attrs

__all__ = ["Act", "ActKind", "act_fields", "read_act"]

_LONGEST: Final = 1000
"""So many characters of each text are kept: even the largest act leaves room for others."""

_LATEST: Final = 253402300799
"""The end of the year 9999: what comes after it has no date."""


class ActKind(StrEnum):
    """What can be done to an election by hand."""

    PAUSE = "pause"
    RESUME = "resume"
    SWITCHOVER = "switchover"
    EVICT = "evict"
    ADOPT = "adopt"


def _kept(text: str) -> str:
    return text[:_LONGEST]


@attrs.frozen(kw_only=True)
class Act:
    """One act of an operator.

    :ivar kind: what was done. :ivar by: who did it, as they said. :ivar why: the reason, empty
        when none was given. :ivar target: what it was done to, as far as it is not the whole
        election: the candidate's name, or the mark that was adopted.
    :ivar at: wall clock of the operator, seconds since 1970: for people, never compared.
    """

    kind: ActKind
    by: str = attrs.field(default="", converter=_kept)
    why: str = attrs.field(default="", converter=_kept)
    target: str = attrs.field(default="", converter=_kept)
    at: float = 0.0

    def __str__(self) -> str:
        """Say it as messages do."""
        target = f" {self.target!r}" if self.target else ""
        why = f": {self.why}" if self.why else ""
        return f"{self.kind}{target} by {self.by!r}{why}"


def act_fields(act: Act) -> dict[str, Any]:
    """Return the act as its row in the history; other than a term's, it has no token."""
    fields = attrs.asdict(act)
    return {"act": str(fields.pop("kind")), **fields}


def read_act(fields: Any) -> Act | None:
    """Read an act from its row; None when it is none, or of a kind not known here."""
    if not isinstance(fields, dict) or "token" in fields or fields.get("act") not in list(ActKind):
        return None
    at = fields.get("at")
    return Act(
        kind=ActKind(fields["act"]),
        at=at if isinstance(at, int | float) and 0 <= at <= _LATEST else 0.0,
        **{name: _text(fields.get(name)) for name in ("by", "why", "target")},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
