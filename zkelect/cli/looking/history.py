"""The command ``zkelect history``: the terms that were, and what operators did."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click

import zkelect
from zkelect.cli.connection import Target, reaching
from zkelect.cli.drawing import (
    Column,
    Line,
    Page,
    Table,
    duration,
    instant,
    new_console,
    print_lines,
)
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.cli.looking.facts import seconds
from zkelect.core.paths import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["draw", "event_facts", "history"]

_FIELDS: Final = ("event", "name", "token", "since", "ended", "seconds", "reason", "by", "why")
_COLUMNS: Final = (
    Column(title="since (UTC)"),
    Column(title="what"),
    Column(title="who", flexible=True),
    Column(title="lasted", right=True),
    Column(title="ended by, or why", flexible=True),
    Column(title="token"),
)


@click.command()
@click.argument("path")
@formatted
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Only the last N of them."
)
@reaching
def history(target: Target, path: str, output: Format, limit: int | None) -> None:
    """Show the terms that were, why each ended, and what operators did.

    The newest comes last; the present term is the last line, when there is one. The last
    hundred terms and the last hundred acts are kept. Instants are those of the clocks of the
    leaders and operators that wrote them.

    \b
    -o tsv: one line for each:
      event name token since ended seconds reason by why
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    path = normalize(path)
    with target.session() as session:
        election = zkelect.Election(session, path)
        events = [event_facts(event) for event in election.history(target.timeout)]
        events += _present(election.leader(target.timeout))
    events = events[-limit:] if limit is not None else events
    if output is Format.TABLE:
        console = new_console()
        print_lines(console, draw(Page.of(console), events, time.time()))
    elif output is Format.TSV:
        write_rows([event[name] for name in _FIELDS] for event in events)
    else:
        write_json(events)


def event_facts(event: zkelect.Term | zkelect.Act) -> dict[str, Any]:
    """Return a term or an act with the same keys."""
    if isinstance(event, zkelect.Act):
        return _facts(
            event=str(event.kind), name=event.target, since=event.at, by=event.by, why=event.why
        )
    ended = None if event.ended is None else seconds(event.ended)
    since = seconds(event.since)
    lasted = None if ended is None or since is None else ended - since
    return _facts(
        event="term",
        name=event.name,
        token=str(event.token),
        since=since,
        ended=ended,
        seconds=lasted,
        reason=event.reason,
    )


def draw(page: Page, events: Sequence[Mapping[str, Any]], now: float) -> list[Line]:
    """Return the table, or a line that says that there was nothing."""
    if not events:
        return [Line("nobody has led yet")]
    rows = [_cells(page, event, now) for event in events]
    table = Table(page, _COLUMNS, rows)
    lines = (table.line(row, _style(event)) for row, event in zip(rows, events, strict=True))
    return [*table.head(), *lines]


def _present(leader: zkelect.Candidate | None) -> list[dict[str, Any]]:
    """Return the term that lasts; leaders of other libraries write none."""
    if leader is None or leader.token is None:
        return []
    return [_facts(event="term", name=leader.name, token=str(leader.token), since=leader.since)]


def _facts(**known: Any) -> dict[str, Any]:
    return {**dict.fromkeys(_FIELDS), **known}


def _cells(page: Page, event: Mapping[str, Any], now: float) -> list[str]:
    since, token = event["since"], event["token"]
    return [
        "?" if since is None else instant(since),
        event["event"],
        page.brief(event["name"] or "") or page.dash,
        _lasted(page, event, now),
        page.brief(event["reason"] or _said(event)),
        page.dash if token is None else _short(token),
    ]


def _lasted(page: Page, event: Mapping[str, Any], now: float) -> str:
    if event["event"] != "term":
        return page.dash
    if event["ended"] is None:
        return "?" if event["since"] is None else duration(now - event["since"])
    return "?" if event["seconds"] is None else duration(event["seconds"])


def _said(event: Mapping[str, Any]) -> str:
    if event["event"] == "term":
        return "still leads"
    why = f": {event['why']}" if event["why"] else ""
    return f"by {event['by']}{why}"


def _short(token: str) -> str:
    """Return generation and czxid, which order the tokens of one election."""
    found = zkelect.Token.parse(token)
    return f"{found.generation:x}:{found.czxid:x}"


def _style(event: Mapping[str, Any]) -> str:
    if event["event"] != "term":
        return "cyan"
    return "bold green" if event["ended"] is None else ""
