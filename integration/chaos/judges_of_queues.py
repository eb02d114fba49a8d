"""What is left in the queue, who is woken by it, and whether somebody leads: I8, I9, I10."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from chaos.judging import Judge
from chaos.terms import Terms

if TYPE_CHECKING:
    from chaos.history import Event

__all__ = ["LedAgain", "NothingLeft", "OneWoken"]

_PROMISED: Final = 2.0
_HELD_WITHIN: Final = 1.0


class LedAgain(Judge):
    """A leader is one whose lease is valid and who has claimed every store.

    A fault is healed when all is mended and the ensemble itself has come to rest: all its
    servers serve, one leads them. Judged is each healing that is followed by so long a time
    without a fault, and each peace, in which every store must accept a write, too. A stopped
    process holds what it holds, such as a transaction of SQLite: that is part of the fault,
    until it goes on.
    """

    name = "I8"
    promise = "a leader within T + 2 s of healing"
    cases = "healings"

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._terms = Terms()
        self._healed: list[float] = []
        self._inflicted: list[float] = []
        self._calmed: list[tuple[float, float]] = []
        self._rows: dict[str, list[float]] = defaultdict(list)
        self._stores: list[str] = []
        self._limit = 0.0
        self._end = 0.0

    def hear(self, event: Event) -> None:
        self._terms.hear(event)
        match event.kind:
            case "begun":
                self._limit = event["session_timeout"] + _PROMISED
                self._stores = event["stores"]
            case "healed":
                self._healed.append(event.at)
            case "inflicting" | "ending":
                self._inflicted.append(event.at)
            case "calmed":
                self._calmed.append((event.at, event.at))
            case "alarmed" if self._calmed:
                self._calmed[-1] = self._calmed[-1][0], event.at
            case "row":
                self._rows[event.by].append(event.at)

    def close(self) -> None:
        if not self._limit:
            self.gaps.append("nobody has told the session timeout")
            return
        for healed in self._healed:
            disturbed = min((at for at in self._inflicted if at > healed), default=None)
            if disturbed is not None and disturbed - healed >= self._limit:
                self._judge(healed)
        for calmed, alarmed in self._calmed:
            for store in self._stores:
                if not any(calmed + self._limit < at < alarmed for at in self._rows[store]):
                    self.violations.append(f"{store} accepted nothing in the peace at {calmed:.3f}")

    def _judge(self, healed: float) -> None:
        self.judged += 1
        led = (
            self._led(healed, term.in_office(self._terms.stores), term.passed)
            for term in self._terms.all.values()
        )
        wait = min((at - healed for at in led if at is not None), default=None)
        if wait is None or wait > self._limit:
            when = "nobody at all" if wait is None else f"somebody after {wait:.3f} s"
            self.violations.append(f"healed at {healed:.3f}, {when} led")
        else:
            self.waits.append(wait)

    def _led(self, healed: float, began: float | None, until: float) -> float | None:
        """Return the first instant from the healing on at which this term was in office."""
        return None if began is None or max(began, healed) >= until else max(began, healed)


class NothingLeft(Judge):
    """Judged is the roll that the observer called at the end of each peace, and at the very end.

    A znode belongs to somebody when its session was that of a candidate process at that time,
    within a second, and its name is that process's.
    """

    name = "I9"
    promise = "no candidate znode of a dead session remains"
    cases = "znodes and calls"

    def __init__(self) -> None:
        super().__init__()
        self._holders: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self._ends: dict[str, float] = {}
        self._calls: list[Event] = []
        self._nodes: dict[str, str] = {}
        self._dead: set[str] = set()
        self._finished = False

    def hear(self, event: Event) -> None:
        match event.kind:
            case "opened":
                self._holders[event.by].append((event.at, event["session"]))
            case "exited":
                self._ends[event["process"]] = event.at
            case "called":
                self._calls.append(event)
            case "created":
                self._nodes[event["node"]] = event["session"]
            case "deleted":
                self._nodes.pop(event["node"], None)
            case "closed":
                self._dead.add(event["session"])
            case "finished":
                self._finished = True

    def close(self) -> None:
        calls: dict[str, list[Event]] = defaultdict(list)
        for call in self._calls:
            calls[call["moment"]].append(call)
        for call in calls["peace"]:
            self._judge_peace(call)
        if not calls["end"] or not self._finished:
            self.gaps.append("the run has no end, and nobody called the roll there")
            return
        self.judged += 1
        if left := calls["end"][-1]["roll"]:
            self.violations.append(f"all have left, and these znodes remain: {left}")
        for node, session in self._nodes.items():
            if session in self._dead:
                self.violations.append(f"{node} remains, its session {session} has ended")

    def _judge_peace(self, call: Event) -> None:
        for node, owner, name in call["roll"]:
            self.judged += 1
            if owner not in self._held(name, call.at):
                self.violations.append(f"at {call.at:.3f} {node} of {name}, {owner}, is nobody's")

    def _held(self, process: str, at: float) -> set[str]:
        """Return the sessions that a process had within a second of an instant."""
        held = set()
        opened = self._holders[process]
        ends = [*(next_at for next_at, _ in opened[1:]), self._ends.get(process, at)]
        for (began, session), ended in zip(opened, ends, strict=False):
            if began <= at + _HELD_WITHIN and ended >= at - _HELD_WITHIN:
                held.add(session)
        return held


class OneWoken(Judge):
    """Woken is a process whose watch tells it that somebody else's znode has gone."""

    name = "I10"
    promise = "at most one process is woken per death"
    cases = "deaths that woke somebody"

    def __init__(self) -> None:
        super().__init__()
        self._woken: dict[str, set[str]] = defaultdict(set)
        self._herd: set[str] = set()
        self._sessions: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._standing: set[str] = set()
        self._path = ""

    def hear(self, event: Event) -> None:
        match event.kind:
            case "begun":
                self._path = event["path"]
            case "opened":
                self._sessions[event["session"]] = event.by.partition(".")[0]
            case "created":
                self._owners[event["node"]] = event["session"]
                self._standing.add(event["node"])
            case "deleted":
                self._standing.discard(event["node"])
            case "woken" if event["path"] == self._path:
                self._herd.add(f"c{event['candidate']}")
            case "woken":
                node, woken = event["path"].rpartition("/")[2], f"c{event['candidate']}"
                if self._stands(woken):
                    self._woken[node].add(woken)

    def _stands(self, process: str) -> bool:
        """Whether it has a candidate: who has left hears what it had watched, once more.

        A watch cannot be taken back by any request that kazoo has.
        """
        owners = (self._sessions.get(self._owners[node]) for node in self._standing)
        return process in owners

    def close(self) -> None:
        for node, woken in self._woken.items():
            owner = self._sessions.get(self._owners.get(node, ""))
            others = woken - {owner}
            self.judged += bool(others)
            if len(others) > 1:
                names = ", ".join(sorted(others))
                self.violations.append(f"{node} of {owner or 'somebody'} went, and woke {names}")
        if len(self._herd) > 1:
            names = ", ".join(sorted(self._herd))
            self.violations.append(f"{names} watch the queue itself: every death wakes them all")
