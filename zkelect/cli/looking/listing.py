"""The command ``zkelect list``: the elections below a znode."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from zkelect.cli.connection import Target, reaching
from zkelect.cli.drawing import Column, Line, Page, Table, duration, new_console, print_lines
from zkelect.cli.failures import tell
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.cli.looking.facts import columns_of, leader_facts
from zkelect.cli.outcomes import pause_fields
from zkelect.core.znodes import is_ours
from zkelect.errors import ZkelectError
from zkelect.session.catalog import check_root, find_elections
from zkelect.session.overview import Overview, Standing, read_overviews, read_standings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zkelect.session.session import Session

__all__ = ["Item", "draw", "list_elections", "read_items"]

_DEPTH: Final = 4
_LEADER: Final = ("name", "address", "token", "phase", "since")
_COLUMNS: Final = (
    Column(title="election", flexible=True),
    Column(title="leader", flexible=True),
    Column(title="for", right=True),
    Column(title="candidates", right=True),
    Column(title="remarks", flexible=True),
)


@click.command("list")
@click.argument("root", default="/")
@formatted
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=_DEPTH,
    show_default=True,
    metavar="N",
    help="Levels of znodes whose children are looked at, ROOT's own included.",
)
@reaching
def list_elections(target: Target, root: str, output: Format, depth: int) -> None:
    """List the elections below a znode: who leads each, and how many stand.

    ROOT is a znode, / by default, or an election itself. Every znode below it costs a request,
    candidates do not. Locks of kazoo and Curator look like elections of theirs.

    \b
    -o tsv: one line for each election:
      path leader address token phase since candidates foreign paused error
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    root = check_root(root)
    with target.session() as session:
        catalog = find_elections(session, root, depth, target.timeout)
        items = [*read_items(session, catalog.paths, target.timeout)]
    if output is Format.JSON:
        write_json([item.facts() for item in items])
    elif output is Format.TSV:
        write_rows(columns_of(item.fields()) for item in items)
    else:
        console = new_console()
        print_lines(console, draw(Page.of(console), items, time.time()))
    if catalog.hidden:
        tell(f"not all could be seen: no permission to read {', '.join(catalog.hidden)}")


@attrs.frozen(kw_only=True)
class Item:
    """One election of the list.

    :ivar overview: None when it could not be read. :ivar error: why not.
    """

    path: str
    overview: Overview | None = None
    standings: Mapping[str, Standing] = attrs.field(factory=dict)
    error: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        overview = self.overview
        if overview is None:
            return {"path": self.path, "error": self.error}
        record = overview.record
        return {
            "path": self.path,
            "leader": leader_facts(overview, self.standings),
            "candidates": len(overview.roll.entries),
            "foreign": sum(not is_ours(entry.uuid) for entry in overview.roll.entries),
            "paused": None if record is None else pause_fields(record.paused),
            "error": None,
        }

    def fields(self) -> dict[str, Any]:
        """Return it as one line has it."""
        facts = self.facts()
        leader, paused = facts.get("leader") or {}, facts.get("paused") or {}
        return {
            "path": self.path,
            **{name: leader.get(name) for name in _LEADER},
            "candidates": facts.get("candidates"),
            "foreign": facts.get("foreign"),
            "paused": paused.get("by"),
            "error": self.error,
        }


def read_items(session: Session, paths: Sequence[str], timeout: float) -> Iterator[Item]:
    """Read these elections; a name is asked for only where the leader has written no term."""
    for path, found in zip(paths, read_overviews(session, paths, timeout), strict=True):
        if isinstance(found, ZkelectError):
            yield Item(path=path, error=str(found))
            continue
        unnamed = found.leader if found.term is None else None
        ahead = [] if unnamed is None else [unnamed]
        standings = read_standings(session, path, ahead, timeout)
        yield Item(path=path, overview=found, standings=standings)


def draw(page: Page, items: Sequence[Item], now: float) -> list[Line]:
    """Return the table, or a line that says that there are none."""
    if not items:
        return [Line("no elections here")]
    rows = [_cells(page, item, now) for item in items]
    table = Table(page, _COLUMNS, rows)
    lines = (table.line(row, _style(item)) for row, item in zip(rows, items, strict=True))
    return [*table.head(), *lines]


def _cells(page: Page, item: Item, now: float) -> list[str]:
    facts = item.facts()
    leader = facts.get("leader")
    since = None if leader is None else leader["since"]
    return [
        page.brief(item.path),
        _leader(page, leader) if item.overview is not None else "?",
        page.dash if since is None else duration(now - since),
        str(facts.get("candidates", "?")),
        ", ".join(_remarks(page, item)),
    ]


def _leader(page: Page, leader: Mapping[str, Any] | None) -> str:
    if leader is None:
        return "nobody"
    return page.brief(leader["name"] or "") or "(no name)"


def _remarks(page: Page, item: Item) -> Iterator[str]:
    overview = item.overview
    if overview is None:
        yield page.brief(item.error or "")
        return
    if overview.record is not None and overview.record.paused is not None:
        yield f"paused by {page.brief(overview.record.paused.by)}"
    if overview.term is not None and overview.term.phase != "serving":
        yield str(overview.term.phase)
    if overview.pending is not None:
        yield f"switchover to {page.brief(overview.pending.name)}"
    if overview.roll.foreign is not None:
        yield f"foreign: {overview.roll.foreign.dialect}"
    if overview.exhausted:
        yield "its numbers are used up"


def _style(item: Item) -> str:
    if item.overview is None:
        return "red"
    if item.overview.leader is None:
        return "bold red" if item.overview.roll.entries else "dim"
    return "yellow" if [*_remarks(Page(), item)] else ""
