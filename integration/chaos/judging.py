"""How a promise is judged: events go by once, in their order; then there is a finding."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

import attrs

if TYPE_CHECKING:
    from chaos.history import Event

__all__ = ["Finding", "Judge", "Verdict"]


class Verdict(StrEnum):
    """What can be said of a promise, or of a whole run."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class Finding:
    """What became of one promise.

    :ivar judged: how many cases were looked at: of what, says ``cases``.
    :ivar violations: each case that breaks it. :ivar gaps: what could not be judged.
    """

    name: str
    promise: str
    cases: str
    judged: int
    violations: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """A violation outweighs a gap; nothing judged is a gap."""
        if self.violations:
            return Verdict.INVALID
        return Verdict.UNKNOWN if self.gaps or not self.judged else Verdict.VALID


class Judge:
    """Judges one promise. Heirs say what they hear, and what they make of it at the end."""

    name: ClassVar[str]
    promise: ClassVar[str]
    cases: ClassVar[str]

    def __init__(self) -> None:
        self.judged = 0
        self.violations: list[str] = []
        self.gaps: list[str] = []

    def hear(self, event: Event) -> None:
        """Take the next event."""

    def close(self) -> None:
        """Judge what only the end of the history can tell."""

    @property
    def finding(self) -> Finding:
        """Return what has been found; after :meth:`close`."""
        return Finding(
            name=self.name,
            promise=self.promise,
            cases=self.cases,
            judged=self.judged,
            violations=tuple(self.violations),
            gaps=tuple(self.gaps),
        )
