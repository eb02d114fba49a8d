"""What leases have claimed: I3, I4, I6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chaos.judges_of_stores import order
from chaos.judging import Judge
from chaos.terms import Term, Terms

if TYPE_CHECKING:
    from chaos.history import Event

__all__ = ["LeasesApart", "TokensUnique", "ZnodeUnderLease"]

_MILLISECOND: Final = 0.001
_STEADY: Final = 0.01
"""Seconds by which the wall clock may move against the boot clock in a run."""


class LeasesApart(Judge):
    name = "I3"
    promise = "no two leases overlap, on the clock that all processes share"
    cases = "terms"

    def __init__(self) -> None:
        super().__init__()
        self._terms = Terms()
        self._forked: list[Event] = []

    def hear(self, event: Event) -> None:
        self._terms.hear(event)
        if event.kind == "forked":
            self._forked.append(event)

    def close(self) -> None:
        latest: Term | None = None
        for term in sorted(self._terms.all.values(), key=lambda term: term.granted):
            self.judged += 1
            if latest is not None and term.granted < latest.claim:
                self.violations.append(_overlap(latest, term))
            if latest is None or latest.claim < term.claim:
                latest = term
        for event in self._forked:
            if event["checked"] != "lost" or set(event["tried"].values()) - {"lost"}:
                self.violations.append(f"a fork leads beside its parent: {event}")


def _overlap(first: Term, second: Term) -> str:
    seconds = first.claim - second.granted
    return (
        f"{second.process} was granted {second.token} at {second.granted:.3f}, {seconds:.3f} s "
        f"before the lease of {first.process} with {first.token} was over "
        f"({first.reason or 'no end told'})"
    )


class ZnodeUnderLease(Judge):
    """The servers' transaction logs say when a znode came and went.

    The instant of a transaction is that of its preparation, rounded down to milliseconds:
    a deletion takes effect later, so a claim that goes beyond it is broken in any case.
    """

    name = "I4"
    promise = "a valid lease implies that the candidate's znode exists"
    cases = "terms"

    def __init__(self) -> None:
        super().__init__()
        self._terms = Terms()
        self._created: dict[str, float] = {}
        self._deleted: dict[str, float] = {}
        self._replayed = False
        self._shifts: list[float] = []

    def hear(self, event: Event) -> None:
        self._terms.hear(event)
        match event.kind:
            case "created":
                self._created.setdefault(event["node"], event.at)
            case "deleted":
                self._deleted.setdefault(event["node"], event.at)
            case "replayed":
                self._replayed = True
            case "beaten":
                self._shifts.append(event["wall"] - event.at)

    def close(self) -> None:
        if not self._replayed:
            self.gaps.append("the servers' transaction logs are missing")
        elif self._shifts and max(self._shifts) - min(self._shifts) > _STEADY:
            self.gaps.append("the wall clock was set while the run went on")
        else:
            for term in self._terms.all.values():
                self._judge(term)

    def _judge(self, term: Term) -> None:
        self.judged += 1
        created = self._created.get(term.node)
        deleted = self._deleted.get(term.node)
        if created is None:
            self.violations.append(f"{term.node} of {term.token} was never created")
        elif term.granted < created:
            self.violations.append(f"{term.token} was granted before {term.node} was created")
        elif deleted is not None and term.claim > deleted + _MILLISECOND:
            self.violations.append(
                f"{term.node} was deleted at {deleted:.3f}, {term.claim - deleted:.3f} s before "
                f"the lease of {term.process} with {term.token} was over "
                f"({term.reason or 'no end told'})"
            )


class TokensUnique(Judge):
    name = "I6"
    promise = "tokens are unique"
    cases = "grants"

    def __init__(self) -> None:
        super().__init__()
        self._granted: dict[str, Event] = {}

    def hear(self, event: Event) -> None:
        if event.kind != "granted":
            return
        self.judged += 1
        place = order(event["token"])
        if place in self._granted:
            self.violations.append(f"{event} has the place of {self._granted[place]}")
        self._granted.setdefault(place, event)
