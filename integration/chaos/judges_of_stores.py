"""What stores have let pass: I1, I2, I5, I7. They hold for every term, whatever ended it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from chaos.judging import Judge
from chaos.operations import Operations

if TYPE_CHECKING:
    from chaos.history import Event

__all__ = ["AcceptedOnce", "NothingStale", "OneChain", "TokensNeverFall"]


class TokensNeverFall(Judge):
    name = "I1"
    promise = "accepted tokens never fall in the order of the commits"
    cases = "accepted writes"

    def __init__(self) -> None:
        super().__init__()
        self._latest: dict[str, str] = {}

    def hear(self, event: Event) -> None:
        if event.kind != "row":
            return
        self.judged += 1
        before = self._latest.get(event.by, "")
        if order(event["token"]) < order(before):
            self.violations.append(f"{event} follows a write of {before}")
        self._latest[event.by] = event["token"]


class NothingStale(Judge):
    """A claim counts from its answer on; a row, by the instant inside its transaction."""

    name = "I2"
    promise = "nothing stale is accepted after a claim"
    cases = "accepted writes behind a claim"

    def __init__(self) -> None:
        super().__init__()
        self._operations = Operations()
        self._claimed: dict[str, str] = {}

    def hear(self, event: Event) -> None:
        answered = self._operations.hear(event)
        if answered is not None and answered.accepted:
            highest = self._claimed.get(answered.store, "")
            self._claimed[answered.store] = max(highest, answered.token, key=order)
        if event.kind == "row" and event.by in self._claimed:
            self.judged += 1
            claimed = self._claimed[event.by]
            if order(event["token"]) < order(claimed):
                self.violations.append(f"{event} was accepted after {claimed} had claimed")


class AcceptedOnce(Judge):
    name = "I5"
    promise = "acknowledged writes are there exactly once, unknown ones at most once, refused never"
    cases = "guarded writes"

    def __init__(self) -> None:
        super().__init__()
        self._operations = Operations()
        self._rows: Counter[tuple[str, str]] = Counter()
        self._tokens: dict[tuple[str, str], str] = {}
        self._logged: set[str] = set()
        self._asked: set[str] = set()

    def hear(self, event: Event) -> None:
        self._operations.hear(event)
        match event.kind:
            case "begun":
                self._asked.update(event["stores"])
            case "row":
                self._rows[event.by, event["op"]] += 1
                self._tokens[event.by, event["op"]] = event["token"]
            case "logged":
                self._logged.add(event.by)

    def close(self) -> None:
        self.gaps += [f"the log of {store} is missing" for store in self._asked - self._logged]
        for operation in self._operations.all.values():
            if operation.what == "write" and operation.store in self._logged:
                self._judge(operation.store, operation.op)
        for store, op in self._rows:
            if op not in self._operations.all:
                self.violations.append(f"{store} has a write that nobody asked for: {op}")

    def _judge(self, store: str, op: str) -> None:
        self.judged += 1
        operation, count = self._operations.all[op], self._rows[store, op]
        wrong = f"{store} has {op} ({operation.outcome}) {count} times"
        least, most = operation.accepted, not operation.left_nothing
        if not least <= count <= most:
            self.violations.append(wrong)
        elif count and self._tokens[store, op] != operation.token:
            self.violations.append(f"{store} has {op} under another token")


class OneChain(Judge):
    name = "I7"
    promise = "the chain of values has no fork"
    cases = "links"

    def __init__(self) -> None:
        super().__init__()
        self._latest: dict[str, str] = {}

    def hear(self, event: Event) -> None:
        if event.kind != "row":
            return
        self.judged += 1
        latest = self._latest.get(event.by, "")
        if event["after"] != latest:
            self.violations.append(f"{event} should be after {latest or 'nothing'}")
        self._latest[event.by] = event["op"]


def order(token: str) -> str:
    """Return the part of a token's text that orders it: generation and czxid."""
    return token[:25]
