"""The table at the end of a run, for a terminal and for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chaos.figures import Figures, percentile
from chaos.judging import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from chaos.checker import Judgement

__all__ = ["markdown", "table"]

_MARKS: Final = {Verdict.VALID: "✓", Verdict.INVALID: "✗", Verdict.UNKNOWN: "?"}
_TOLD: Final = 5


def table(judgement: Judgement, figures: Figures) -> str:
    """Return the verdict, promise by promise, and the figures, as lines of plain text."""
    lines = ["", *_promises(judgement.findings), ""]
    lines += _columns(_faults(figures))
    lines += ["", *_columns([(name, value) for name, value in _figures(figures).items()])]
    lines += ["", *_complaints(judgement), f"verdict: {judgement.verdict.upper()}"]
    return "\n".join(lines)


def markdown(judgement: Judgement, figures: Figures, about: Mapping[str, str]) -> str:
    """Return the same figures as one column of a table, ready for docs/chaos.md."""
    rows = {
        **about,
        "verdict": str(judgement.verdict),
        "violations": str(sum(len(finding.violations) for finding in judgement.findings)),
        "faults": ", ".join(f"{kind} {count}" for kind, count in sorted(figures.faults.items())),
        **_figures(figures),
    }
    lines = (f"| {name.strip()} | {value} |" for name, value in rows.items())
    return "\n".join(["| | |", "|---|---|", *lines])


def _promises(findings: Sequence[Finding]) -> Iterator[str]:
    width = max(len(finding.promise) for finding in findings)
    for finding in findings:
        mark = _MARKS[finding.verdict]
        told = f"{finding.judged:,} {finding.cases}"
        if finding.violations:
            told += f", {len(finding.violations):,} violations"
        yield f"{mark} {finding.name:<3}  {finding.promise:<{width}}  {told}"


def _faults(figures: Figures) -> list[tuple[str, str]]:
    return [
        (kind, f"{count:>3} times, {figures.fault_seconds[kind]:>6.1f} s in all")
        for kind, count in sorted(figures.faults.items())
    ]


def _figures(figures: Figures) -> dict[str, str]:
    accepted = sum(outcomes["done"] for outcomes in figures.outcomes.values())
    tried = sum(outcomes.total() for outcomes in figures.outcomes.values())
    return {
        "duration": f"{figures.seconds:.0f} s",
        "faults in all": f"{figures.faults.total()}, {figures.pairs} times two at once",
        "elections": f"{figures.elections:,}",
        "terms ended": _counts(figures.ends),
        "guarded writes": f"{tried:,}, accepted {accepted:,}",
        **{f"  {store}": _counts(outcomes) for store, outcomes in sorted(figures.outcomes.items())},
        "writes that came too late": (
            f"{figures.stale['the store']:,} refused by the store, "
            f"{figures.stale['the lease']:,} stopped by the lease before it"
        ),
        "latency of a guarded write": _milliseconds(figures.latencies),
        "fail-over, write to write": _seconds(figures.failovers),
        "hand-over after a resignation": _seconds(figures.handovers),
        "the ensemble's own recovery": _seconds(figures.recoveries),
        "the ensemble served and committed nothing": (
            f"{figures.stalls} times, until its leader was restarted"
        ),
        "from healing to a leader": _seconds(figures.healings),
        "longest zombie window": (
            f"{max(figures.zombies, default=0.0):.3f} s after the successor's grant"
        ),
        "ended by an operator's hand": _disowned(figures),
        "forks that tried to lead on": f"{figures.forks:,}",
        "longest time the observer saw nobody": f"{figures.leaderless:.2f} s",
        "longest time this machine stood still": f"{figures.late:.2f} s",
    }


def _disowned(figures: Figures) -> str:
    """Terms that are taken out of I3 and I4: the lease cannot know, only the fence holds."""
    if not figures.disowned:
        return "none while its lease was valid"
    longest = max(figures.disowned)
    return f"{_counts(figures.acts)}: out of I3 and I4; believed in up to {longest:.3f} s longer"


def _counts(counter: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counter.items()) if count)


def _seconds(values: Sequence[float]) -> str:
    if not values:
        return "none"
    shares = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))
    told = [f"{name} {percentile(values, share):.2f} s" for share, name in shares]
    return f"{', '.join(told)}, longest {max(values):.2f} s ({len(values):,})"


def _milliseconds(values: Sequence[float]) -> str:
    if not values:
        return "none"
    shares = ((0.5, "p50"), (0.99, "p99"))
    return ", ".join(f"{name} {percentile(values, share) * 1000:.1f} ms" for share, name in shares)


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def _complaints(judgement: Judgement) -> Iterator[str]:
    for defect in judgement.defects:
        yield f"the evidence: {defect}"
    for finding in judgement.findings:
        told = [*finding.violations, *finding.gaps]
        yield from (f"{finding.name}: {one}" for one in told[:_TOLD])
        if len(told) > _TOLD:
            yield f"{finding.name}: and {len(told) - _TOLD:,} more"
        if not told and not finding.judged:
            yield f"{finding.name}: there was nothing to judge"
