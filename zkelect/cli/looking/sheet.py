"""The page of one election: what people read of it, line by line. Pure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.cli.drawing import Column, Line, Page, Table, duration, instant
from zkelect.cli.looking.lineup import Place, Role, line_up, oddities
from zkelect.core.znodes import LAST_SEQUENCE, WORN_SEQUENCE, Entry, is_ours

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zkelect.session.overview import Overview, Standing

__all__ = ["Sheet"]

_KEYS: Final = 11
"""Cells of what stands before each line of the head."""

_WIDE: Final = 150
"""From so many cells on there is room for whole names of znodes, which ``evict`` takes."""

_NAMED: Final = 3
_STYLES: Final = {
    Role.LEADS: "bold green",
    Role.FIRST: "bold",
    Role.BESIDE: "bold red",
    Role.HEIR: "",
    Role.WAITS: "",
}
_ODD: Final = "yellow"


@attrs.frozen(kw_only=True)
class Sheet:
    """What is shown of an election.

    :ivar standings: of the candidates that were read, by znode.
    :ivar now: wall clock, seconds since 1970: for how long something is so.
    :ivar orphans: see :func:`oddities`.
    """

    page: Page
    overview: Overview
    standings: Mapping[str, Standing]
    now: float
    show_session_id: bool
    places: Sequence[Place]
    orphans: Mapping[Entry, str]

    @classmethod
    def of(
        cls,
        page: Page,
        overview: Overview,
        standings: Mapping[str, Standing],
        now: float,
        *,
        show_session_id: bool = False,
    ) -> Sheet:
        """Make one of what was read."""
        places = line_up(overview)
        return cls(
            page=page,
            overview=overview,
            standings=standings,
            now=now,
            show_session_id=show_session_id,
            places=places,
            orphans=oddities(places, standings),
        )

    def judged(self, end: int) -> Sheet:
        """Return this sheet, with the orphans that are known by now among the first places."""
        return attrs.evolve(self, orphans=oddities(self.places[:end], self.standings))

    # --- the head ----------------------------------------------------------------------------

    def head(self) -> list[Line]:
        """Return what is known of the election as a whole."""
        lines = [Line(self.page.brief(self.overview.path, self.page.width), "bold")]
        for key, text, style in self._entries():
            lines += self._entry(key, text, style)
        return lines

    def _entry(self, key: str, text: str, style: str) -> Iterator[Line]:
        """Wrap it: at night a reason that is cut off is none."""
        room = max(self.page.width - _KEYS - 2, _KEYS)
        for place, piece in enumerate(textwrap.wrap(text, room) or [""]):
            before = "" if place else key
            yield Line(f"  {before:<{_KEYS}}{self.page.cut(piece, room)}", style)

    def _entries(self) -> Iterator[tuple[str, str, str]]:
        yield "leader", *self._leader()
        overview = self.overview
        if overview.term is not None:
            yield "token", str(overview.term.token), ""
            if overview.term.address:
                yield "address", self.page.brief(overview.term.address), ""
        yield "queue", self._queue(), ""
        yield from self._history()
        yield from self._acts()
        yield from self._warnings()

    def _leader(self) -> tuple[str, str]:
        leader, term = self.overview.leader, self.overview.term
        if leader is None:
            return f"nobody{self._why_nobody()}", "bold red"
        if term is None:
            return (
                f"{self._name(leader)}, of another library ({leader.dialect}): it has no lease",
                "bold yellow",
            )
        since = f"{duration(self.now - term.since)} (since {instant(term.since)} UTC)"
        return f"{self.page.brief(term.name)}, {term.phase} for {since}", "bold green"

    def _why_nobody(self) -> str:
        first, record = self.overview.first, self.overview.record
        if first is None:
            return ": nobody stands"
        if self.overview.exhausted:
            return f": {self._name(first)} is first, and the numbers are used up"
        if record is not None and record.paused is not None:
            return f": {self._name(first)} is first, and the election is paused"
        return f": {self._name(first)} is first, and has not begun its term"

    def _queue(self) -> str:
        count = len(self.places)
        foreign = sum(place.foreign for place in self.places)
        of_which = f", {foreign} of another library" if foreign else ""
        return f"{count} candidate{'' if count == 1 else 's'}{of_which}"

    def _history(self) -> Iterator[tuple[str, str, str]]:
        record, terms = self.overview.record, self.overview.terms
        if record is None:
            yield "lineage", "none: no candidate of this library has ever stood", ""
        else:
            so_far = f"{terms} term{'' if terms == 1 else 's'} so far"
            yield "lineage", f"{record.lineage}, generation {record.generation}, {so_far}", ""
        used = self.overview.counter
        text = f"the next number is {used} of {LAST_SEQUENCE} ({used / LAST_SEQUENCE:.0%} used)"
        worn = used >= WORN_SEQUENCE or self.overview.exhausted
        yield "counter", text, "bold red" if worn else ""

    def _acts(self) -> Iterator[tuple[str, str, str]]:
        record, handover = self.overview.record, self.overview.pending
        if record is not None and record.paused is not None:
            pause = record.paused
            why = f": {self.page.brief(pause.why)}" if pause.why else ""
            by = self.page.brief(pause.by)
            yield "paused", f"by {by} since {instant(pause.since)} UTC{why}", "bold yellow"
        if handover is not None:
            why = f": {self.page.brief(handover.why)}" if handover.why else ""
            text = f"to {self.page.brief(handover.name)} ({handover.state}), asked by "
            yield "switchover", f"{text}{self.page.brief(handover.by)}{why}", "bold yellow"

    def _warnings(self) -> Iterator[tuple[str, str, str]]:
        dialects = sorted(self.overview.roll.dialects)
        if len(dialects) > 1:
            text = f"{', '.join(dialects)}: these do not see each other; two may lead"
            yield "dialects", text, "bold red"
        if self.orphans:
            named = [self._name(entry) for entry in self.orphans]
            yield "orphans", self._some(named), _ODD
        strangers = [self.page.brief(child) for child in sorted(self.overview.roll.strangers)]
        if strangers:
            yield "strangers", f"{self._some(strangers)} (no candidates)", _ODD

    def _some(self, names: Sequence[str]) -> str:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"{len(names)}: {', '.join(names[:_NAMED])}{more}"

    # --- the queue ---------------------------------------------------------------------------

    def table(self, first: int) -> Table:
        """Return the table, as wide as its first rows need it, and the number of the last."""
        rows = [*self.places[:first], *self.places[-1:]]
        return Table(self.page, self._columns(), map(self._cells, rows))

    def titles(self, table: Table) -> list[Line]:
        """Return what stands between the head and the queue."""
        return [Line(""), *table.head()]

    def rows(self, table: Table, start: int, end: int) -> Iterator[Line]:
        """Draw some of the places; who has left since the queue was read is left out."""
        for place in self.places[start:end]:
            if place.entry.node in self.standings:
                yield table.line(self._cells(place), self._style(place))

    def _columns(self) -> list[Column]:
        columns = [
            Column(title="#", right=True),
            Column(title="candidate", flexible=True),
            Column(title="state"),
            Column(title="waits for", flexible=True),
            Column(title="number", right=True),
            Column(title="for", right=True),
            Column(title="remarks", flexible=True),
        ]
        if self.page.width >= _WIDE:
            columns.insert(4, Column(title="znode", flexible=True))
            del columns[5]  # its number is the end of its name
        if self.show_session_id:
            columns.insert(-1, Column(title="session"))
        return columns

    def _cells(self, place: Place) -> list[str]:
        standing = self.standings.get(place.entry.node)
        since = None if standing is None else standing.since
        wide = self.page.width >= _WIDE
        cells = [
            str(place.number),
            self._name(place.entry),
            str(place.role),
            self.page.dash if place.behind is None else self._name(place.behind),
            self.page.brief(place.entry.node) if wide else str(place.entry.sequence),
            "?" if since is None else duration(self.now - since),
            ", ".join(self._remarks(place)),
        ]
        if self.show_session_id:
            session = None if standing is None else standing.session
            cells.insert(-1, session or self.page.dash)
        return cells

    def _remarks(self, place: Place) -> Iterator[str]:
        entry, standing = place.entry, self.standings.get(place.entry.node)
        if place.foreign:
            yield f"foreign: {entry.dialect}"
        if entry.priority:
            yield f"priority {entry.priority}"
        if entry in self.orphans:
            yield f"orphan: {self.orphans[entry]}"
        if entry.exhausted:
            yield "its number cannot be ordered"
        if standing is not None and standing.name is None:
            yield "its name may not be read"
        elif standing is not None and standing.shortened:
            yield f"a name of {standing.size} bytes"

    def _style(self, place: Place) -> str:
        odd = place.foreign or place.entry in self.orphans or place.entry.exhausted
        return _STYLES[place.role] or (_ODD if odd else "")

    def _name(self, entry: Entry) -> str:
        """Return what a candidate is called; its number, while its name is not known."""
        standing, term = self.standings.get(entry.node), self.overview.term
        if standing is not None and standing.name is not None:
            return self.page.brief(standing.name) or "(no name)"
        if term is not None and term.node == entry.node and is_ours(entry.uuid):
            return self.page.brief(term.name)
        return f"number {entry.sequence}"
