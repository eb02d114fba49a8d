"""Terms: what each leadership has claimed, put together from what was written about it.

A term *claims* the time from its grant to the instant up to which its process could have
counted on it:

* its last deadline, when it ended by that (``lapsed``), when its session ended (``expired``),
  or when nobody has told an end, as after a kill: the lease says that nobody else can have
  been elected before the deadline, whatever has become of its holder;
* the last check that passed, when the leader ended it itself: it resigned, was fenced, closed;
* at most the moment at which an operator was told to delete its znode or close its session:
  what comes after is outside what a lease can know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from chaos.history import Event

__all__ = ["Term", "Terms"]

_BY_DEADLINE: Final = frozenset({"", "lapsed", "expired"})


@attrs.define(kw_only=True)
class Term:
    """One leadership.

    :ivar granted: when it began. :ivar passed: its latest check that is known to have passed.
    :ivar deadline: the latest it had. :ivar reason: why it ended, empty when nobody told.
    :ivar ordered: when an operator was told to end it; None: never. :ivar act: by what.
    :ivar claims: store, and when its claim there was acknowledged.
    """

    token: str
    process: str
    node: str
    session: str
    granted: float
    passed: float
    deadline: float
    reason: str = ""
    ordered: float | None = None
    act: str = ""
    claims: dict[str, float] = attrs.field(factory=dict)

    @property
    def full_claim(self) -> float:
        """Until when it claimed to lead, operators left aside."""
        return self.deadline if self.reason in _BY_DEADLINE else self.passed

    @property
    def claim(self) -> float:
        """Until when it claimed to lead and its lease had to hold."""
        return self.full_claim if self.ordered is None else min(self.full_claim, self.ordered)

    @property
    def disowned(self) -> bool:
        """Whether an operator broke in before its claim was over."""
        return self.ordered is not None and self.ordered < self.full_claim

    def in_office(self, stores: int) -> float | None:
        """Return since when it had claimed every store; None: never."""
        return max(self.claims.values()) if len(self.claims) >= stores > 0 else None


class Terms:
    """Every term of the history so far, in the order of their grants."""

    def __init__(self) -> None:
        self.all: dict[str, Term] = {}
        self.stores = 0
        self._claims: dict[str, tuple[str, str]] = {}

    def hear(self, event: Event) -> None:
        """Take the next event."""
        match event.kind:
            case "begun":
                self.stores = len(event["stores"])
            case "granted":
                self._grant(event)
            case "leased" | "resigned" | "ended" | "ordered" if event["token"] in self.all:
                self._change(self.all[event["token"]], event)
            case "asked" if event["what"] == "claim":
                self._claims[event["op"]] = event["token"], event["store"]
            case "answered" if event["op"] in self._claims and event["outcome"] == "done":
                token, store = self._claims[event["op"]]
                if token in self.all:
                    self.all[token].claims.setdefault(store, event.at)

    def _grant(self, event: Event) -> None:
        term = Term(
            token=event["token"],
            process=event.by,
            node=event["node"],
            session=event["session"],
            granted=event.at,
            passed=event.at,
            deadline=event.at,
        )
        self.all.setdefault(term.token, term)

    def _change(self, term: Term, event: Event) -> None:
        match event.kind:
            case "leased":
                term.passed = max(term.passed, event.at)
                term.deadline = max(term.deadline, event["deadline"])
            case "resigned":  # written before, so a kill in between leaves no doubt
                term.reason = event.kind
            case "ended":
                term.passed, term.reason = max(term.passed, event["passed"]), event["reason"]
            case "ordered":
                self._order(term, event)

    def _order(self, term: Term, event: Event) -> None:
        """A closed session takes every later term of that session with it."""
        same = [each for each in self.all.values() if each.session == term.session]
        for each in same if event["act"] == "close" else [term]:
            if each.ordered is None:
                each.ordered, each.act = event.at, event["act"]
