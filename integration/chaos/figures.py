"""The figures of a run: counts and times that people want to see beside the verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs

from chaos.judges_of_queues import LedAgain
from chaos.judges_of_stores import order
from chaos.operations import Operations
from chaos.terms import Term, Terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chaos.history import Event, History
    from chaos.operations import Operation

__all__ = ["Figures", "measure", "percentile"]


@attrs.define(kw_only=True)
class Figures:
    """What a run was made of. Times are in seconds.

    :ivar faults: how many of each kind, and for how long in all.
    :ivar ends: terms by the reason of their end.
    :ivar stale: writes that came too late, by what refused them: the store, or the lease.
    :ivar failovers: from the last write of a leader that did not resign to its successor in
        office. :ivar handovers: the same after a resignation.
    :ivar zombies: how long after the grant of a successor an old leader still tried to write.
    :ivar disowned: of terms that an operator ended: how long the leader believed in it beyond.
    :ivar acts: these terms by what the operator did.
    :ivar healings: from a healing to a leader in office, where I8 judged it.
    :ivar recoveries: ZooKeeper's own time, from all mended to an ensemble that serves.
    :ivar stalls: how often it served and committed nothing, until its leader was restarted.
    :ivar leaderless: the longest time in which the observer saw nobody.
    """

    seconds: float = 0.0
    faults: Counter[str] = attrs.field(factory=Counter)
    fault_seconds: Counter[str] = attrs.field(factory=Counter)
    pairs: int = 0
    elections: int = 0
    ends: Counter[str] = attrs.field(factory=Counter)
    outcomes: dict[str, Counter[str]] = attrs.field(factory=lambda: defaultdict(Counter))
    stale: Counter[str] = attrs.field(factory=Counter)
    failovers: Sequence[float] = ()
    handovers: Sequence[float] = ()
    zombies: Sequence[float] = ()
    disowned: Sequence[float] = ()
    acts: Counter[str] = attrs.field(factory=Counter)
    latencies: Sequence[float] = ()
    leaderless: float = 0.0
    forks: int = 0
    late: float = 0.0
    healings: Sequence[float] = ()
    recoveries: Sequence[float] = ()
    stalls: int = 0


def measure(history: History) -> Figures:
    """Take the figures of a run from its evidence, in one pass."""
    figures, terms, operations, healings = Figures(), Terms(), Operations(), LedAgain()
    for event in history.events:
        healings.hear(event)
        terms.hear(event)
        operations.hear(event)
        _count(figures, event)
    healings.close()
    figures.healings = healings.waits
    figures.seconds = _span(history.events, "begun", "finished")
    figures.leaderless = _longest_without(history.events)
    figures.recoveries = _recoveries(history.events)
    row = sorted(terms.all.values(), key=lambda term: term.granted)
    _measure_operations(figures, operations)
    _measure_terms(figures, row, terms.stores, operations)
    return figures


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that so large a share of the values does not exceed."""
    ranked = sorted(values)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)]


def _count(figures: Figures, event: Event) -> None:
    match event.kind:
        case "granted":
            figures.elections += 1
        case "forked":
            figures.forks += 1
        case "stalled":
            figures.stalls += 1
        case "late":
            figures.late = max(figures.late, event["seconds"])
        case "inflicted":
            figures.faults[event["fault"]] += 1
            figures.fault_seconds[event["fault"]] += event["seconds"]
        case "healed":
            figures.pairs += len(event["faults"]) > 1


def _measure_operations(figures: Figures, operations: Operations) -> None:
    writes = [one for one in operations.all.values() if one.what == "write"]
    for one in writes:
        figures.outcomes[one.store][one.outcome] += 1
        if one.outcome in ("fenced", "lost"):
            figures.stale["the store" if one.outcome == "fenced" else "the lease"] += 1
    figures.latencies = [one.latency for one in writes if one.accepted and one.latency is not None]


def _measure_terms(
    figures: Figures, row: Sequence[Term], stores: int, operations: Operations
) -> None:
    by_token: dict[str, list[Operation]] = defaultdict(list)
    for one in operations.all.values():
        by_token[one.token].append(one)
    figures.ends.update(term.reason or "killed" for term in row)
    figures.acts.update(term.act for term in row if term.disowned)
    figures.disowned = [term.passed - (term.ordered or 0.0) for term in row if term.disowned]
    zombies, waits = [], defaultdict(list)
    for term, successor in pairwise(sorted(row, key=lambda term: order(term.token))):
        tried = [one.asked for one in by_token[term.token]]
        zombies.append(max([0.0, *(at - successor.granted for at in tried)]))
    for term, successor in pairwise([term for term in row if term.in_office(stores) is not None]):
        since, began = _last_write(by_token[term.token]), successor.in_office(stores)
        if since is not None and began is not None:
            waits[term.reason == "resigned"].append(max(0.0, began - since))
    figures.zombies, figures.failovers, figures.handovers = zombies, waits[False], waits[True]


def _last_write(operations: Iterable[Operation]) -> float | None:
    done = (one.answered for one in operations if one.accepted and one.answered is not None)
    return max(done, default=None)


def _span(events: Iterable[Event], first: str, last: str) -> float:
    at = {event.kind: event.at for event in events if event.kind in (first, last)}
    return at.get(last, 0.0) - at.get(first, 0.0) if len(at) > 1 else 0.0


def _recoveries(events: Iterable[Event]) -> list[float]:
    turns = [event for event in events if event.kind in ("mended", "healed")]
    return [
        healed.at - mended.at
        for mended, healed in pairwise(turns)
        if (mended.kind, healed.kind) == ("mended", "healed")
    ]


def _longest_without(events: Iterable[Event]) -> float:
    """Return the longest time for which the observer saw nobody, after it saw somebody."""
    seen = [event for event in events if event.kind == "seen"]
    gaps = (after.at - one.at for one, after in pairwise(seen[1:]) if one.get("token") is None)
    return max(gaps, default=0.0)
