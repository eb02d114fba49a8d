"""What was seen, for programs: the fields of JSON and the columns of tab-separated values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from zkelect.cli.looking.lineup import line_up, oddities
from zkelect.cli.outcomes import pause_fields
from zkelect.core.znodes import LAST_SEQUENCE, is_ours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zkelect.cli.looking.lineup import Place
    from zkelect.core.handover import Handover
    from zkelect.core.znodes import Entry
    from zkelect.session.overview import Overview, Standing

__all__ = ["COLUMNS", "candidate_facts", "columns_of", "leader_facts", "overview_facts", "seconds"]

COLUMNS: Final = (
    "place",
    "role",
    "name",
    "node",
    "number",
    "behind",
    "dialect",
    "foreign",
    "priority",
    "since",
    "orphan",
)
"""Of a candidate, in this order; the session id, where it is asked for, comes last."""


def overview_facts(
    overview: Overview, standings: Mapping[str, Standing], *, show_session_id: bool
) -> dict[str, Any]:
    """Return all that is known of an election, every candidate included."""
    places = line_up(overview)
    orphans = oddities(places, standings)
    record = overview.record
    return {
        "path": overview.path,
        "leader": leader_facts(overview, standings),
        "terms": overview.terms,
        "lineage": None if record is None else record.lineage,
        "generation": None if record is None else record.generation,
        "paused": None if record is None else pause_fields(record.paused),
        "switchover": _handover_facts(overview.pending),
        "candidates": len(places),
        "foreign": sum(place.foreign for place in places),
        "orphans": len(orphans),
        "dialects": sorted(overview.roll.dialects),
        "strangers": sorted(overview.roll.strangers),
        "counter": {
            "next": overview.counter,
            "last": LAST_SEQUENCE,
            "exhausted": overview.exhausted,
        },
        "queue": [
            candidate_facts(place, standings, orphans, show_session_id=show_session_id)
            for place in places
        ],
    }


def leader_facts(overview: Overview, standings: Mapping[str, Standing]) -> dict[str, Any] | None:
    """Return who leads; of a candidate of another library less is known."""
    leader, term = overview.leader, overview.term
    if leader is None:
        return None
    standing = standings.get(leader.node)
    foreign = not is_ours(leader.uuid)
    if term is None:
        name = None if standing is None else standing.name
        since = None if standing is None else standing.since
        return {**_nothing(), "node": leader.node, "foreign": foreign, "name": name, "since": since}
    return {
        "name": term.name,
        "node": term.node,
        "address": term.address,
        "token": str(term.token),
        "phase": str(term.phase),
        "since": seconds(term.since),
        "foreign": foreign,
    }


def candidate_facts(
    place: Place,
    standings: Mapping[str, Standing],
    orphans: Mapping[Entry, str],
    *,
    show_session_id: bool,
) -> dict[str, Any]:
    """Return one candidate's place, and what its znode tells."""
    entry, standing = place.entry, standings.get(place.entry.node)
    facts = {
        "place": place.number,
        "role": str(place.role),
        "name": None if standing is None else standing.name,
        "node": entry.node,
        "number": entry.sequence,
        "behind": None if place.behind is None else place.behind.node,
        "dialect": entry.dialect,
        "foreign": place.foreign,
        "priority": entry.priority,
        "since": None if standing is None else standing.since,
        "orphan": orphans.get(entry),
    }
    if show_session_id:
        facts["session_id"] = None if standing is None else standing.session
    return facts


def columns_of(facts: Mapping[str, Any]) -> Sequence[object]:
    """Return them as the fields of one line."""
    return [*facts.values()]


def seconds(instant: float) -> float | None:
    """Return an instant that somebody has written, None when it is no number JSON has."""
    return instant if math.isfinite(instant) else None


def _nothing() -> dict[str, Any]:
    fields = ("name", "node", "address", "token", "phase", "since", "foreign")
    return dict.fromkeys(fields)


def _handover_facts(handover: Handover | None) -> dict[str, Any] | None:
    if handover is None:
        return None
    return {
        "to": handover.name,
        "node": handover.target,
        "state": str(handover.state),
        "by": handover.by,
        "why": handover.why,
    }
