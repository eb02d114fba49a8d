"""What happens in the demo, as values: told by processes, shown to people, counted at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, Self

import attrs

from zkelect.token import Token

__all__ = ["Event", "Screen"]


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened.

    :ivar kind: what, a past participle. :ivar at: boot-clock instant, seconds.
    :ivar name: of the candidate it happened to; empty: to none.
    :ivar facts: the rest, as JSON has it; tokens in their wire form.
    """

    kind: str
    at: float
    name: str = ""
    facts: Mapping[str, Any] = attrs.field(factory=dict)

    def __getitem__(self, fact: str) -> Any:
        return self.facts[fact]

    @property
    def token(self) -> Token:
        """The token of the term in which it happened."""
        return Token.parse(self["token"])

    @property
    def deadline(self) -> float:
        """Instant until which the lease was proven when it was told."""
        return self.at + float(self["lease"])

    def encode(self) -> str:
        """Return the line that a candidate process writes."""
        return json.dumps({"event": self.kind, "at": self.at, **self.facts})

    @classmethod
    def decode(cls, line: str, name: str) -> Self:
        """Read what the candidate of this name wrote; inverse of :meth:`encode`."""
        facts = json.loads(line)
        return cls(kind=facts.pop("event"), at=facts.pop("at"), name=name, facts=facts)

    def public(self, start: float) -> dict[str, Any]:
        """Return what is shown, with seconds since ``start``."""
        who = {"name": self.name} if self.name else {}
        return {"event": self.kind, "seconds": round(self.at - start, 3), **who, **self.facts}


class Screen(Protocol):
    """Where events are shown, as they come."""

    def show(self, event: Event) -> None:
        """Show one event."""

    def close(self) -> None:
        """Take away what is shown only for the moment."""
