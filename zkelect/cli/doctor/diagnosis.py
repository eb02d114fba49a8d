"""All findings of one visit, the worst first."""

from __future__ import annotations

from zkelect.cli.doctor.election import examine_election
from zkelect.cli.doctor.ensemble import examine_ensemble
from zkelect.cli.doctor.facts import Facts
from zkelect.cli.doctor.finding import Finding, Severity
from zkelect.cli.doctor.timing import examine_timing

__all__ = ["diagnose", "worst"]


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """Return what is not as it should be, the worst first; nothing is asked any more."""
    found = [*examine_ensemble(facts), *examine_timing(facts), *examine_election(facts)]
    return tuple(sorted(found, key=lambda finding: -finding.severity))


def worst(findings: tuple[Finding, ...]) -> Severity:
    """Return the severity of the worst one; a note when there is none."""
    return max((finding.severity for finding in findings), default=Severity.NOTE)
