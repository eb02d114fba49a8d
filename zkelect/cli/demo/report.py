"""What the demo has shown: what was told, set against what the log holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from zkelect.cli.demo.event import Event
from zkelect.cli.demo.log import Row
from zkelect.token import Token

__all__ = ["Report", "Term", "audit"]

_LEASED: Final = frozenset({"elected", "claimed", "committed", "held"})
_ENDS: Final = ("resigned", "frozen", "killed")


@attrs.frozen(kw_only=True)
class Term:
    """One leadership as it was told.

    :ivar begun: boot-clock instant. :ivar over: the instant until which its work was allowed:
        the last lease it told of, or its resignation.
    """

    name: str
    token: Token
    begun: float
    over: float


@attrs.frozen(kw_only=True)
class Report:
    """The figures of one run, and what is wrong with them.

    :ivar successions: how a leader ended, and the seconds from then to the next leader.
    :ivar rows: in the log. :ivar acknowledged: told by their writers to be durable.
    :ivar acked_lost: acknowledged, but not in the log as they were told.
    :ivar unacknowledged: in the log, but not told: their writer was killed between the two.
    :ivar stale_refused, stale_accepted: writes with a token lower than one seen before.
    :ivar lease_overlaps: leaders elected while the lease of the one before was valid.
    :ivar others_woken: candidates that a planned handover woke beside the heir.
    :ivar problems: what is not as promised, for people; empty: all is.
    """

    terms: tuple[Term, ...]
    successions: Mapping[str, float]
    rows: int
    acknowledged: int
    acked_lost: int
    unacknowledged: int
    stale_refused: int
    stale_accepted: int
    lease_overlaps: int
    others_woken: int
    problems: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        return {
            "ok": not self.problems,
            "elections": len(self.terms),
            "leaders": [term.name for term in self.terms],
            "tokens": [str(term.token) for term in self.terms],
            "hand_over_seconds": self.successions.get("resigned"),
            "fail_over_seconds": {
                end: seconds for end, seconds in self.successions.items() if end != "resigned"
            },
            "rows": self.rows,
            "acked": self.acknowledged,
            "acked_lost": self.acked_lost,
            "unacked": self.unacknowledged,
            "stale_refused": self.stale_refused,
            "stale_accepted": self.stale_accepted,
            "lease_overlaps": self.lease_overlaps,
            "others_woken": self.others_woken,
            "problems": list(self.problems),
        }


def audit(
    events: Sequence[Event],
    rows: Sequence[Row],
    mark: Token | None,
    failures: Iterable[str] = (),
) -> Report:
    """Judge a run.

    :param events: all that was told, in any order. :param rows: the log, in commit order.
    :param mark: the fence's mark at the end.
    :param failures: what kept the run from its end, as sentences.
    """
    terms = tuple(sorted(_terms(events), key=lambda term: term.begun))
    acked = {_acknowledged(event) for event in events if event.kind == "committed"}
    killed = {event.token for event in events if event.kind == "killed"}
    stale = {*_falling(rows), *(event["row"] for event in events if event.kind == "accepted")}
    untold = [row for row in rows if row not in acked and row.number not in stale]
    report = Report(
        terms=terms,
        successions=dict(_successions(events, terms)),
        rows=len(rows),
        acknowledged=len(acked),
        acked_lost=len(acked - set(rows)),
        unacknowledged=sum(row.token in killed for row in untold),
        stale_refused=sum(event.kind == "refused" for event in events),
        stale_accepted=len(stale),
        lease_overlaps=sum(later.begun < earlier.over for earlier, later in pairwise(terms)),
        others_woken=sum(event["others"] for event in events if event.kind == "watchers_listed"),
        problems=tuple(failures),
    )
    strangers = len(untold) - report.unacknowledged
    problems = [*report.problems, *_breaches(report, strangers)]
    return attrs.evolve(report, problems=tuple(problems or _omissions(report, mark)))


def _breaches(report: Report, strangers: int) -> Iterator[str]:
    """Say which promise was broken."""
    tokens = [term.token for term in report.terms]
    if report.acked_lost:
        yield f"acknowledged writes missing from the log: {report.acked_lost}"
    if report.stale_accepted:
        yield f"stale writes accepted by the store: {report.stale_accepted}"
    if strangers:
        yield f"rows acknowledged by nobody, though their writers lived: {strangers}"
    if report.lease_overlaps:
        yield f"leaders elected while the lease before was valid: {report.lease_overlaps}"
    if report.others_woken:
        yield f"candidates woken in vain by a handover: {report.others_woken}"
    if any(later <= earlier for earlier, later in pairwise(tokens)):
        yield "the tokens of the leaders do not rise"


def _omissions(report: Report, mark: Token | None) -> Iterator[str]:
    """Say what a run that came to its end should have shown, and has not."""
    if not report.stale_refused:
        yield "no stale write was refused: the fence has shown nothing"
    last = max((term.token for term in report.terms), default=None)
    if mark is None or mark != last:
        yield f"the fence's mark is {mark}, the last leader's token {last}"


def _terms(events: Sequence[Event]) -> Iterator[Term]:
    for event in events:
        if event.kind == "elected":
            mine = [other for other in events if other.facts.get("token") == event["token"]]
            lease = max(other.deadline for other in mine if other.kind in _LEASED)
            resigned = [other.at for other in mine if other.kind == "resigned"]
            over = min([lease, *resigned])
            yield Term(name=event.name, token=event.token, begun=event.at, over=over)


def _successions(events: Iterable[Event], terms: Iterable[Term]) -> Iterator[tuple[str, float]]:
    for event in events:
        later = [term.begun for term in terms if term.begun > event.at]
        if event.kind in _ENDS and later:
            yield event.kind, round(min(later) - event.at, 4)


def _acknowledged(event: Event) -> Row:
    return Row(event["row"], event.token, event.name, event["entry"])


def _falling(rows: Iterable[Row]) -> Iterator[int]:
    """Give the rows whose token is lower than one before them, in commit order."""
    highest: Token | None = None
    for row in rows:
        if highest is not None and row.token < highest:
            yield row.number
        else:
            highest = row.token
