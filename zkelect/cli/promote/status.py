"""``zkelect promote status``: the members of a cluster, and why each could not win."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from zkelect.cli.connection import reaching
from zkelect.cli.drawing import Column, Line, Page, Table, new_console, print_lines
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.cli.outcomes import pause_fields
from zkelect.cli.promote.membership import cluster
from zkelect.cli.promote.policies import deciding, synchronizing
from zkelect.recipes.operating import Promotion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zkelect.cli.connection import Target
    from zkelect.recipes.choice import Policy
    from zkelect.recipes.operating import ClusterStatus

__all__ = ["describe", "status"]

_LONGEST: Final = 1000
"""Cells of one reason: there are few members, and it is what one looks for."""
_COLUMNS: Final = (
    Column(title="member", flexible=True),
    Column(title="role"),
    Column(title="offset", right=True),
    Column(title="behind", right=True),
    Column(title="why not eligible", flexible=True),
)


@click.command(short_help="Show the members: role, position, lag, why not eligible.")
@cluster
@formatted
@synchronizing
@deciding
@reaching
def status(target: Target, path: str, output: Format, policy: Policy) -> None:
    """Show the members of a cluster: role, position, lag, and why one is not eligible.

    Give it the options that the agents have: whether one is eligible depends on them.

    \b
    -o tsv: one line for each member:
      name role position behind reason
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    with target.session() as session:
        found = Promotion(session, path, policy=policy).status()
    if output is Format.JSON:
        write_json(_fields(path, found))
    elif output is Format.TSV:
        write_rows(tuple(row.values()) for row in _members(found))
    else:
        console = new_console()
        page = attrs.evolve(Page.of(console), longest=_LONGEST)
        print_lines(console, describe(page, path, found))


def _fields(path: str, found: ClusterStatus) -> dict[str, Any]:
    page = found.page
    return {
        "path": path,
        "primary": found.primary,
        "phase": None if page is None else str(page.phase),
        "why": None if page is None else page.why or None,
        "coordinator": found.coordinator,
        "holder": found.holder,
        "in_step": None if found.sync is None else list(found.sync.names),
        "paused": pause_fields(found.paused),
        "troubles": list(found.troubles),
        "members": list(_members(found)),
    }


def _members(found: ClusterStatus) -> Iterator[dict[str, Any]]:
    for verdict in found.verdicts:
        beat = found.beat(verdict.name)
        yield {
            "name": verdict.name,
            "role": _role(found, verdict.name),
            "position": None if verdict.position is None else str(verdict.position),
            "behind": None if beat is None else beat.observed.behind,
            "reason": verdict.reason or None,
        }


def _role(found: ClusterStatus, name: str) -> str:
    beat = found.beat(name)
    return "absent" if beat is None else str(beat.observed.role)


def describe(page: Page, path: str, found: ClusterStatus) -> Iterator[Line]:
    """Yield the lines of a cluster: what is so, then a row for each member."""
    for text in _summary(path, found):
        yield from _wrapped(page, text)
    rows = [tuple(_cells(page, row)) for row in _members(found)]
    if rows:
        yield Line("")
        yield from _table(page, rows)


def _table(page: Page, rows: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    """Draw the table, and below it what it has no room for."""
    table = Table(page, _COLUMNS, rows)
    yield from table.head()
    lines = [table.line(row) for row in rows]
    yield from lines
    for (name, *_, reason), line in zip(rows, lines, strict=True):
        if not line.text.endswith(reason):
            yield from _wrapped(page, f"{name}: {reason}")


def _wrapped(page: Page, text: str) -> Iterator[Line]:
    """Break a text into lines of the page: what is to be done about it is at its end, often."""
    for line in textwrap.wrap(page.brief(text), page.width, subsequent_indent="  "):
        yield Line(line)


def _summary(path: str, found: ClusterStatus) -> Iterator[str]:
    if found.page is None:
        yield f"{path}: nobody looks after it yet, or it has another path or chroot"
    elif found.steady:
        yield f"{path}: {found.primary} is primary"
    else:
        yield f"{path}: {found.page.phase}, {found.primary} was primary: {found.page.why}"
    yield f"coordinator: {found.coordinator or 'nobody'}; may write: {found.holder or 'nobody'}"
    if found.sync is not None:
        yield f"in step: {', '.join(found.sync.names) or 'nobody'}"
    if found.paused is not None:
        yield str(found.paused)
    yield from found.troubles


def _cells(page: Page, row: dict[str, Any]) -> Iterator[str]:
    position = row["position"]
    offset = "" if position is None else position.rpartition(":")[2]
    for value in (row["name"], row["role"], offset, row["behind"], row["reason"]):
        yield page.brief("" if value is None else str(value))
