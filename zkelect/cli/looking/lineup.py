"""A queue in order: who leads, who waits for whom, and what is odd about each. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.core.orphans import find_orphans
from zkelect.core.znodes import CURATOR_LATCH, CURATOR_LOCK, KAZOO, Entry, is_ours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zkelect.session.overview import Overview, Standing

__all__ = ["Place", "Role", "line_up", "oddities", "twins"]

_BLIND: Final = frozenset({KAZOO.name, CURATOR_LATCH.name, CURATOR_LOCK.name})
"""Libraries that see only candidates named as they name theirs."""


class Role(StrEnum):
    """What a candidate does in the queue."""

    LEADS = "leads"
    FIRST = "first"
    """Nobody is ahead, and its term is not written: it is about to lead, or may not."""
    BESIDE = "may lead"
    """Of another library, which sees none of those ahead: it may lead beside the leader."""
    HEIR = "heir"
    WAITS = "waits"


@attrs.frozen(kw_only=True)
class Place:
    """One candidate's place in the queue.

    :ivar number: from 1. :ivar behind: its predecessor, whose end it waits for.
    """

    number: int
    entry: Entry
    role: Role
    behind: Entry | None

    @property
    def foreign(self) -> bool:
        """Whether another library has made it."""
        return not is_ours(self.entry.uuid)


def line_up(overview: Overview) -> tuple[Place, ...]:
    """Return all places, the leader's first."""
    places = []
    before: Entry | None = None
    alike: dict[str, Entry] = {}
    for number, entry in enumerate(overview.roll.entries, 1):
        blind = not is_ours(entry.uuid) and entry.dialect in _BLIND
        behind = alike.get(entry.dialect) if blind else before
        role = _role(overview, number, behind)
        places.append(Place(number=number, entry=entry, role=role, behind=behind))
        before = alike[entry.dialect] = entry
    return tuple(places)


def oddities(places: Sequence[Place], standings: Mapping[str, Standing]) -> dict[Entry, str]:
    """Return which candidates nobody stands behind, and why, as far as it can be told.

    By the names alone: a campaign makes one znode, so of two with its uuid one is left over. By
    what was read of them: see :func:`find_orphans`.
    """
    known = {place.entry: standings.get(place.entry.node) for place in places}
    owners = {
        entry: standing.session_id
        for entry, standing in known.items()
        if standing is not None and standing.name is not None
    }
    found = {entry: str(orphan) for entry, orphan in find_orphans(owners).items()}
    return {**twins(places), **found}


def twins(places: Sequence[Place]) -> dict[Entry, str]:
    """Return those of ours whose campaign stands ahead of them too."""
    seen: set[str] = set()
    found: dict[Entry, str] = {}
    for place in places:
        if not place.foreign and place.entry.uuid in seen:
            found[place.entry] = "its campaign stands ahead of it"
        seen.add(place.entry.uuid)
    return found


def _role(overview: Overview, number: int, behind: Entry | None) -> Role:
    if number == 1:
        return Role.FIRST if overview.leader is None else Role.LEADS
    if behind is None:
        return Role.BESIDE
    return Role.HEIR if number == 2 else Role.WAITS
