"""Names: two worlds that differ only in names are one.

Sessions, uuids, attempts, looks, sequence numbers and czxids are compared, never counted with.
So each may be replaced by its rank among those of its kind that somebody still remembers, and
a candidate in its ninth attempt is where it was in its second.

What a value mentions is a mask, one field of bits for each kind of name; a world's names
are dense when no field has a hole. Ranks keep the order, and the counter of the parent is
ranked among the sequence numbers: what will be numbered next stays above what was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import attrs

from zkelect.core.events import Stamp
from zkelect.core.record import Record
from zkelect.core.znodes import KAZOO, Entry

__all__ = [
    "CZXID",
    "SEQUENCE",
    "Ranks",
    "Visit",
    "attempts_of",
    "fresh",
    "is_dense",
    "label",
    "labels_of",
    "looks_of",
    "mentions",
    "node_name",
    "rename",
    "rename_node",
    "rename_session",
    "session_name",
    "sessions_of",
]

WIDTH: Final = 32
"""Bits of a field, the highest one always clear: so that a sum never leaves its field."""

CANDIDATES: Final = 4
SEQUENCE: Final = 0
CZXID: Final = 1
_ONES: Final = sum(1 << field * WIDTH for field in range(2 + 4 * CANDIDATES))

Visit = Callable[[int, int], int]
"""Told the field and the number of each name; returns the number to put in its place."""

_T = TypeVar("_T")


def sessions_of(own: int) -> int:
    """Return the field of a candidate's sessions."""
    return 2 + 4 * own


def labels_of(own: int) -> int:
    """Return the field of a candidate's uuids."""
    return 3 + 4 * own


def attempts_of(own: int) -> int:
    """Return the field of a candidate's attempts."""
    return 4 + 4 * own


def looks_of(own: int) -> int:
    """Return the field of a candidate's reads of the record."""
    return 5 + 4 * own


# --- how names are written: as the stories do ------------------------------------------------


def session_name(own: int, number: int) -> int:
    """Return the id of A's first session, a1: theatre.py reads it so."""
    return (ord("A") + own) * 0x100 + number + 1


def label(own: int, number: int) -> str:
    """Return the uuid of A's first campaign, A, or of its second, A2."""
    return chr(ord("A") + own) + (str(number + 1) if number else "")


def node_name(uuid: str, sequence: int) -> str:
    """Return the znode that a create with this uuid makes."""
    return f"{KAZOO.prefix(uuid)}{sequence:010d}"


# --- walking over the names in a value -------------------------------------------------------


def rename_session(name: int, visit: Visit) -> int:
    """Replace a session id, or an ephemeralOwner."""
    own = (name >> 8) - ord("A")
    return session_name(own, visit(sessions_of(own), (name & 0xFF) - 1))


def _rename_label(name: str, visit: Visit) -> str:
    if not name:
        return name
    own = ord(name[0]) - ord("A")
    return label(own, visit(labels_of(own), int(name[1:] or 1) - 1))


def rename_node(name: str, visit: Visit) -> str:
    """Replace a znode's name: its uuid and its number."""
    uuid, _, number = name.partition(KAZOO.infix)
    return node_name(_rename_label(uuid, visit), visit(SEQUENCE, int(number)))


def rename_czxid(czxid: int, visit: Visit) -> int:
    """Replace a czxid; 0 stands for none."""
    return visit(CZXID, czxid - 1) + 1 if czxid else 0


def _rename_entry(entry: Entry, visit: Visit) -> Entry:
    parsed = KAZOO.parse(rename_node(entry.node, visit))
    assert parsed is not None
    return parsed


class _Walk:
    """Replaces the names in the fields of one of a candidate's states, events or effects."""

    def __init__(self, own: int, visit: Visit) -> None:
        self._own = own
        self._visit = visit

    def change(self, what: Any) -> Any:
        changes = {}
        for field in attrs.fields_dict(type(what)):
            change, value = _FIELDS.get(field), getattr(what, field)
            if change is not None and value is not None:
                changes[field] = change(self, value)
        return attrs.evolve(what, **changes)

    def attempt(self, number: int) -> int:
        return self._visit(attempts_of(self._own), number)

    def look(self, number: int) -> int:
        return self._visit(looks_of(self._own), number)

    def stamp(self, stamp: Stamp) -> Stamp:
        changed: Stamp = self.change(stamp)
        return changed

    def session(self, name: int) -> int:
        return rename_session(name, self._visit)

    def label(self, name: str) -> str:
        return _rename_label(name, self._visit)

    def czxid(self, czxid: int) -> int:
        return rename_czxid(czxid, self._visit)

    def node(self, node: str | Entry) -> str | Entry:
        if isinstance(node, Entry):
            return _rename_entry(node, self._visit)
        return rename_node(node, self._visit)

    def nodes(self, nodes: Iterable[str | Entry]) -> tuple[str | Entry, ...]:
        return tuple(map(self.node, nodes))

    def node_set(self, nodes: Iterable[str]) -> frozenset[str | Entry]:
        return frozenset(self.nodes(nodes))

    def adopted(self, found: Iterable[tuple[Entry, int]]) -> tuple[tuple[str | Entry, int], ...]:
        return tuple((self.node(entry), self.czxid(czxid)) for entry, czxid in found)

    def record(self, record: Record) -> Record:
        if not record.evictions:
            return record
        renamed = (
            attrs.evolve(each, node=rename_node(each.node, self._visit))
            for each in record.evictions
        )
        return attrs.evolve(record, evictions=tuple(renamed))

    def again(self, again: tuple[int, str]) -> tuple[int, str]:
        return again[0], self.label(again[1])


_FIELDS: Final[dict[str, Callable[[_Walk, Any], Any]]] = {
    "stamp": _Walk.stamp,
    "term": _Walk.stamp,
    "session_id": _Walk.session,
    "owner": _Walk.session,
    "uuid": _Walk.label,
    "attempt": _Walk.attempt,
    "look": _Walk.look,
    "node": _Walk.node,
    "czxid": _Walk.czxid,
    "children": _Walk.nodes,
    "ahead": _Walk.nodes,
    "suspects": _Walk.node_set,
    "doomed": _Walk.node_set,
    "adopted": _Walk.adopted,
    "again": _Walk.again,
    "record": _Walk.record,
}


def rename(what: _T, own: int, visit: Visit) -> _T:
    """Replace every name in one of a candidate's states, events or effects."""
    changed: _T = _Walk(own, visit).change(what)
    return changed


# --- masks and ranks -------------------------------------------------------------------------


class _Mentions:
    """Remembers every name it is told."""

    def __init__(self) -> None:
        self.mask = 0

    def __call__(self, field: int, number: int) -> int:
        assert number < WIDTH - 1, "too many names of one kind for the mask"
        self.mask |= 1 << field * WIDTH + number
        return number


def mentions(walk: Callable[[Visit], object]) -> int:
    """Return the mask of the names that a walk comes by."""
    seen = _Mentions()
    walk(seen)
    return seen.mask


def is_dense(mask: int) -> bool:
    """Tell whether every field is filled from its lowest bit: then ranks change nothing."""
    return not mask & (mask + _ONES)


def fresh(mask: int, field: int) -> int:
    """Return the lowest number above all of that kind."""
    return (mask >> field * WIDTH & (1 << WIDTH) - 1).bit_length()


class Ranks:
    """Replaces each number by how many of its kind in the mask are smaller."""

    def __init__(self, mask: int) -> None:
        self._mask = mask

    def __call__(self, field: int, number: int) -> int:
        below = self._mask >> field * WIDTH & (1 << number) - 1
        return below.bit_count()
