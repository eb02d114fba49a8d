"""The checker: history, logs of the stores and of the servers in, a verdict out.

It sees each event once, in one order, and hands it to the judge of each promise. The run is
valid when every promise was judged and held; invalid when one was broken; otherwise unknown:
a run that shows nothing must not look like one that shows that all is well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from chaos.judges_of_queues import LedAgain, NothingLeft, OneWoken
from chaos.judges_of_stores import AcceptedOnce, NothingStale, OneChain, TokensNeverFall
from chaos.judges_of_terms import LeasesApart, TokensUnique, ZnodeUnderLease
from chaos.judging import Finding, Judge, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chaos.history import Event, History

__all__ = ["JUDGES", "Judgement", "check"]

JUDGES: Final[tuple[type[Judge], ...]] = (
    TokensNeverFall,
    NothingStale,
    LeasesApart,
    ZnodeUnderLease,
    AcceptedOnce,
    TokensUnique,
    OneChain,
    LedAgain,
    NothingLeft,
    OneWoken,
)


@attrs.frozen(kw_only=True)
class Judgement:
    """What became of a whole run.

    :ivar findings: of each promise, in order. :ivar defects: of the evidence as a whole.
    """

    findings: tuple[Finding, ...]
    defects: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        verdicts = {finding.verdict for finding in self.findings}
        if Verdict.INVALID in verdicts:
            return Verdict.INVALID
        if Verdict.UNKNOWN in verdicts or self.defects:
            return Verdict.UNKNOWN
        return Verdict.VALID

    @property
    def broken(self) -> frozenset[str]:
        """The names of the promises that were broken."""
        invalid = (one for one in self.findings if one.verdict is Verdict.INVALID)
        return frozenset(finding.name for finding in invalid)


def check(history: History) -> Judgement:
    """Judge a run by its evidence."""
    judges = [judge() for judge in JUDGES]
    for event in history.events:
        for judge in judges:
            judge.hear(event)
    for judge in judges:
        judge.close()
    return Judgement(
        findings=tuple(judge.finding for judge in judges),
        defects=(*history.defects, *_defects(history.events)),
    )


def _defects(events: Iterable[Event]) -> list[str]:
    """What makes the evidence as a whole doubtful, whatever it says about single promises."""
    found: list[str] = []
    missing = {"the run has not begun", "the run has not finished"}
    for event in events:
        match event.kind:
            case "begun":
                missing.update(f"no {fault} was inflicted" for fault in event["faults"])
                missing.discard("the run has not begun")
            case "inflicted":
                missing.discard(f"no {event['fault']} was inflicted")
            case "finished":
                missing.discard("the run has not finished")
            case "crashed" | "stuck":
                found.append(str(event).partition(" trace=")[0])
    return [*found, *sorted(missing)]
