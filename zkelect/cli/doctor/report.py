"""How the doctor tells what it has found: to people, and to programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any, Final

import attrs

from zkelect.cli.doctor.diagnosis import worst
from zkelect.cli.doctor.facts import Election, Facts, Server, Session, Spread
from zkelect.cli.doctor.finding import Finding, Severity
from zkelect.cli.doctor.timing import lease_of, timeout_needed
from zkelect.cli.drawing import Column, Line, Page, Table
from zkelect.cli.escaping import printable
from zkelect.core.znodes import LAST_SEQUENCE

__all__ = ["HEADINGS", "field_rows", "headline", "json_object", "report"]

HEADINGS: Final = ("severity", "finding", "where", "what", "advice")
_STYLES: Final = {
    Severity.NOTE: "green",
    Severity.WARNING: "yellow",
    Severity.CRITICAL: "bold red",
}
_COLUMNS: Final = (
    Column(title="server", flexible=True),
    Column(title="state", flexible=True),
    Column(title="version"),
    Column(title="connect", right=True),
    Column(title="commit", right=True),
    Column(title="grants"),
    Column(title="tick"),
)
_VERDICTS: Final = {
    Severity.NOTE: "OK",
    Severity.WARNING: "WARNING",
    Severity.CRITICAL: "CRITICAL",
}


def headline(findings: Sequence[Finding]) -> str:
    """Return how many findings there are of each severity."""
    critical, warnings, notes = (
        sum(finding.severity is each for finding in findings) for each in reversed(Severity)
    )
    return (
        f"{critical} critical, {warnings} warning{'s' * (warnings != 1)}, "
        f"{notes} note{'s' * (notes != 1)}"
    )


def report(page: Page, facts: Facts, findings: Sequence[Finding]) -> Iterator[Line]:
    """Tell it to people: the verdict, what is wrong, the worst first, then what was seen."""
    verdict = worst(tuple(findings))
    yield from _wrap(
        page, f"{_VERDICTS[verdict]} {facts.hosts}: {headline(findings)}", _STYLES[verdict]
    )
    for finding in findings:
        yield Line("")
        yield from _tell_finding(page, finding)
    yield Line("")
    yield from _tell_servers(page, facts.ensemble.servers)
    yield from _tell_part(page, "session", _session_lines(facts.session))
    yield from _tell_part(page, "host", _host_lines(facts))
    if facts.election is not None:
        title = f"election {facts.election.path}"
        yield from _tell_part(page, title, _election_lines(facts.election))


def _tell_finding(page: Page, finding: Finding) -> Iterator[Line]:
    title = f"{finding.severity.name.lower()}  {finding.code}  {finding.where}".rstrip()
    yield from _wrap(page, title, _STYLES[finding.severity])
    yield from _wrap(page, finding.what, mark="   ")
    yield from _wrap(page, finding.advice, mark="-> ")


def _tell_part(page: Page, title: str, lines: Iterable[str]) -> Iterator[Line]:
    told = [*lines]
    if told:
        yield Line("")
        yield from _wrap(page, title, "bold")
    for line in told:
        yield from _wrap(page, line, mark="   ")


def _wrap(page: Page, text: str, style: str = "", mark: str = "") -> Iterator[Line]:
    """Break it into lines, each further one as far in as the first: nothing is cut off."""
    further = " " * len(mark)
    shown = printable(text)
    for line in wrap(shown, page.width, initial_indent=mark, subsequent_indent=further):
        yield Line(line, style)


def _tell_servers(page: Page, servers: Sequence[Server]) -> Iterator[Line]:
    rows = [tuple(map(printable, _server_row(server))) for server in servers]
    table = Table(page, _COLUMNS, rows)
    yield from table.head()
    yield from map(table.line, rows)


def _server_row(server: Server) -> tuple[str, ...]:
    if not server.serves:
        return (server.name, server.problem, server.version or "", "", "", "", "")
    return (
        server.name,
        server.mode or "serving",
        server.version or "?",
        _milliseconds(server.connect),
        _milliseconds(server.handshake),
        f"{server.least:g}-{server.most:g} s",
        "?" if server.tick is None else f"{server.tick:g} s",
    )


def _milliseconds(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds * 1000:.1f} ms"


def _session_lines(session: Session) -> Iterator[str]:
    lease = lease_of(session)
    if session.granted is None or lease is None:
        return
    yield f"timeout {session.asked:g} s asked, {session.granted:g} s granted"
    tick = "not told" if session.tick is None else f"{session.tick:g} s"
    yield f"a lease of {lease:.2f} s is left at each answer (tick_time {tick})"
    if session.reads is not None and session.commits is not None:
        yield f"commits {_spread(session.commits)}; reads {_spread(session.reads)}"


def _spread(times: Spread) -> str:
    return f"{_milliseconds(times.median)}, slowest {_milliseconds(times.worst)}"


def _host_lines(facts: Facts) -> Iterator[str]:
    host = facts.host
    if host is None:
        return
    yield f"longest pause {_milliseconds(host.pause)} in {host.measured:.1f} s"
    needed = timeout_needed(facts)
    yield f"with these commits that asks for a session timeout of {needed:g} s"
    if host.ahead is not None:
        yield f"wall clock {host.ahead:+.3f} s from the servers', to within {host.doubt:.3f} s"


def _election_lines(election: Election) -> Iterator[str]:
    look = election.now
    if look is None:
        yield "may not be read"
        return
    count = len(look.roll.entries)
    yield f"{count} candidate{'s' * (count != 1)}"
    if look.first is not None:
        state = "is in office" if look.in_office else "is first in the queue"
        yield f"{look.names.get(look.first, look.first.node)} {state}"
    if election.next_sequence is not None:
        yield f"next number {election.next_sequence} of {LAST_SEQUENCE}"
    yield f"the roll is {look.size} bytes"


def field_rows(findings: Sequence[Finding]) -> Iterator[tuple[str, ...]]:
    """Return each finding as a row for tab-separated values; :data:`HEADINGS` names them."""
    for each in findings:
        yield each.severity.name.lower(), each.code, each.where, each.what, each.advice


def json_object(facts: Facts, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return all of it for a program; session ids are left out."""
    rows = [dict(zip(HEADINGS, row, strict=True)) for row in field_rows(findings)]
    return {
        "severity": worst(tuple(findings)).name.lower(),
        "findings": rows,
        "hosts": facts.hosts,
        "servers": [_server_object(server) for server in facts.ensemble.servers],
        "voters": facts.ensemble.voters,
        "session": {**attrs.asdict(facts.session), "lease": lease_of(facts.session)},
        "host": _host_object(facts),
        "election": None if facts.election is None else _election_object(facts.election),
    }


def _server_object(server: Server) -> dict[str, Any]:
    fields = attrs.asdict(server)
    sessions = fields.pop("sessions")
    return {**fields, "sessions": None if sessions is None else len(sessions)}


def _host_object(facts: Facts) -> dict[str, Any] | None:
    if facts.host is None:
        return None
    return {**attrs.asdict(facts.host), "timeout_needed": timeout_needed(facts)}


def _election_object(election: Election) -> dict[str, Any]:
    look = election.now
    return {
        "path": election.path,
        "exists": election.exists,
        "paused": None if election.pause is None else str(election.pause),
        "candidates": None if look is None else len(look.roll.entries),
        "first": None if look is None or look.first is None else look.names.get(look.first),
        "in_office": None if look is None else look.in_office,
        "next_sequence": election.next_sequence,
    }
