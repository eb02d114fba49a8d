"""``zkelect promote status``: the members of a cluster, and why each could not win."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from zkelect.cli.connection import reaching
from zkelect.cli.drawing import Column, Line, Page, Table, new_console, print_lines
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.cli.promote.policies import deciding
from zkelect.recipes.operating import Promotion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.cli.connection import Target
    from zkelect.recipes.choice import Policy
    from zkelect.recipes.operating import ClusterStatus

__all__ = ["describe", "status"]

_LONGEST: Final = 1000
"""Cells of one reason: there are few members, and it is what one looks for."""
_COLUMNS: Final = (
    Column(title="member"),
    Column(title="role"),
    Column(title="offset", right=True),
    Column(title="behind", right=True),
    Column(title="why not eligible", flexible=True),
)


@click.command()
@click.argument("path")
@formatted
@deciding
@reaching
def status(target: Target, path: str, output: Format, policy: Policy) -> None:
    """Show the members of a cluster: role, position, lag, and why one is not eligible.

    Give it the options that the agents have: whether one is eligible depends on them.
    """
    with target.session() as session:
        found = Promotion(session, path, policy=policy).status()
    if output is Format.JSON:
        write_json(_fields(found))
    elif output is Format.TSV:
        write_rows(tuple(row.values()) for row in _members(found))
    else:
        console = new_console()
        page = attrs.evolve(Page.of(console), longest=_LONGEST)
        print_lines(console, describe(page, path, found))


def _fields(found: ClusterStatus) -> dict[str, Any]:
    page = found.page
    return {
        "primary": found.primary,
        "phase": None if page is None else str(page.phase),
        "why": "" if page is None else page.why,
        "coordinator": found.coordinator,
        "holder": found.holder,
        "in_step": [] if found.sync is None else list(found.sync.names),
        "paused": found.paused,
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
            "reason": verdict.reason,
        }


def _role(found: ClusterStatus, name: str) -> str:
    beat = found.beat(name)
    return "absent" if beat is None else str(beat.observed.role)


def describe(page: Page, path: str, found: ClusterStatus) -> Iterator[Line]:
    """Yield the lines of a cluster: what is so, then a row for each member."""
    for text in _summary(path, found):
        yield Line(page.brief(text, page.width))
    rows = [tuple(_cells(page, row)) for row in _members(found)]
    if rows:
        table = Table(page, _COLUMNS, rows)
        yield Line("")
        yield from table.head()
        yield from (table.line(row) for row in rows)


def _summary(path: str, found: ClusterStatus) -> Iterator[str]:
    if found.page is None:
        yield f"{path}: nobody looks after it yet"
    elif found.steady:
        yield f"{path}: {found.primary} is primary"
    else:
        yield f"{path}: {found.page.phase}, {found.primary} was primary: {found.page.why}"
    yield f"coordinator: {found.coordinator or 'nobody'}; may write: {found.holder or 'nobody'}"
    if found.sync is not None:
        yield f"in step: {', '.join(found.sync.names) or 'nobody'}"
    if found.paused:
        yield f"{found.paused}"


def _cells(page: Page, row: dict[str, Any]) -> Iterator[str]:
    position = row["position"]
    offset = "" if position is None else position.rpartition(":")[2]
    for value in (row["name"], row["role"], offset, row["behind"], row["reason"]):
        yield page.brief("" if value is None else str(value))
