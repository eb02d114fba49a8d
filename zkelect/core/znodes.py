"""Candidate znodes: how they are named, who is whose predecessor."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import attrs

__all__ = [
    "CURATOR_LATCH",
    "CURATOR_LOCK",
    "DIALECTS",
    "HIGHEST_PRIORITY",
    "KAZOO",
    "LAST_SEQUENCE",
    "WORN_SEQUENCE",
    "ZKELECT",
    "Dialect",
    "Entry",
    "Roll",
    "is_ours",
    "ranked",
]

LAST_SEQUENCE: Final = 2**31 - 2
"""The last number that can be trusted: at 2^31-1 the parent's counter sticks or turns
negative, and libraries disagree on the order (ZOOKEEPER-2101, kazoo #730)."""

WORN_SEQUENCE: Final = 2**30
"""From here on operators are warned: half of the numbers are used up."""

HIGHEST_PRIORITY: Final = 2**12 - 1
"""So much fits into the 12 bits that a version 8 UUID has for its maker behind the version."""

_OURS: Final = re.compile(r"[0-9a-f]{12}8[0-9a-f]{3}[89ab][0-9a-f]{15}\Z")
_PRIORITY: Final = slice(13, 16)


@attrs.frozen(kw_only=True)
class Entry:
    """One candidate's place in the queue, as its znode's name tells it.

    :param node: the name below the parent. :param sequence: the server's number;
        negative once the counter has overflowed.
    :param uuid: what stands before the dialect's mark, without dashes: whose create it was.
    :param dialect: the name of the dialect.
    """

    node: str
    sequence: int
    uuid: str
    dialect: str = "kazoo"

    @property
    def exhausted(self) -> bool:
        """Whether the number is outside the range in which order can be told."""
        return not 0 <= self.sequence <= LAST_SEQUENCE

    @property
    def priority(self) -> int:
        """Who of those that wait should lead first: the highest; 0 for other libraries' peers."""
        return int(self.uuid[_PRIORITY], 16) if is_ours(self.uuid) else 0


@attrs.frozen(kw_only=True)
class Dialect:
    """How one library names its candidates.

    :param name: what users call it. :param lead: what stands before the uuid.
    :param infix: what stands between uuid and number.
    :param dashed: whether the uuid is written with its four dashes.
    :param anonymous: whether there is none, only a number.
    """

    name: str
    infix: str
    lead: str = ""
    dashed: bool = False
    anonymous: bool = False

    def prefix(self, uuid: str) -> str:
        """Return the name to hand to a sequential create."""
        return f"{self.lead}{_dashed(uuid) if self.dashed else uuid}{self.infix}"

    def parse(self, child: str) -> Entry | None:
        """Read one child's name; None when it is not of this dialect."""
        match = _pattern(self.lead, "" if self.anonymous else ".*", self.infix).fullmatch(child)
        if match is None:
            return None
        uuid = match[1].replace("-", "") if self.lead else match[1]
        return Entry(node=child, sequence=int(match[2]), uuid=uuid, dialect=self.name)

    def read(self, children: Iterable[str]) -> Roll:
        """Put a parent's children in order; what is no candidate is kept aside.

        Candidates of all dialects are peers: the number that orders them is the parent's, one
        counter for all.
        """
        entries, strangers = [], []
        for child in children:
            entry = self.parse(child) or _recognize(child)
            if entry is None:
                strangers.append(child)
            else:
                entries.append(entry)
        entries.sort(key=lambda entry: (entry.sequence, entry.node))
        return Roll(entries=tuple(entries), strangers=tuple(strangers))


KAZOO: Final = Dialect(name="kazoo", infix="__lock__")
"""kazoo's Election and Lock (kazoo.recipe.lock)."""

CURATOR_LATCH: Final = Dialect(name="curator-latch", lead="_c_", infix="-latch-", dashed=True)
"""Curator's LeaderLatch (org.apache.curator.framework.recipes.leader)."""

CURATOR_LOCK: Final = Dialect(name="curator-lock", lead="_c_", infix="-lock-", dashed=True)
"""Curator's InterProcessMutex and LeaderSelector; Go's zk.Lock, without the dashes."""

ZKELECT: Final = Dialect(name="zkelect", lead="zkelect-", infix="-")
"""Our own, for a path that no other library shares."""

_JAVA: Final = Dialect(name="java", lead="x-", infix="-")
"""ZooKeeper's lock recipe in Java (WriteLock): what stands there is its session id."""

_JAVA_ELECTION: Final = Dialect(name="java-election", lead="n_", infix="", anonymous=True)
"""ZooKeeper's election recipe in Java (LeaderElectionSupport)."""

DIALECTS: Final = {each.name: each for each in (KAZOO, CURATOR_LATCH, CURATOR_LOCK, ZKELECT)}
"""Those in which we can stand ourselves, by name."""

_KNOWN: Final = (*DIALECTS.values(), _JAVA, _JAVA_ELECTION)


def _recognize(child: str) -> Entry | None:
    return next((entry for each in _KNOWN if (entry := each.parse(child))), None)


@lru_cache
def _pattern(lead: str, uuid: str, infix: str) -> re.Pattern[str]:
    """Java pads with ``%010d``: a negative number has nine or ten digits."""
    number = r"-?[0-9]{10}|-[0-9]{9}"
    return re.compile(rf"{re.escape(lead)}({uuid}){re.escape(infix)}({number})")


def _dashed(uuid: str) -> str:
    return "-".join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]))


@attrs.frozen(kw_only=True)
class Roll:
    """The candidates in order at one instant, first the leader; strangers aside."""

    entries: tuple[Entry, ...]
    strangers: tuple[str, ...] = ()

    def find(self, node: str) -> Entry | None:
        """Return the entry with that name, or None."""
        return next((entry for entry in self.entries if entry.node == node), None)

    def ahead_of(self, own: Entry) -> tuple[Entry, ...]:
        """Return those before ``own`` in order; the last one is its predecessor."""
        return tuple(entry for entry in self.entries if entry.sequence < own.sequence)

    def behind(self, own: Entry) -> tuple[Entry, ...]:
        """Return those after ``own`` in order; the first one is its heir."""
        return tuple(entry for entry in self.entries if entry.sequence > own.sequence)

    def preferred_behind(self, own: Entry) -> Entry | None:
        """Return who behind ``own`` has the highest priority, if that is above ``own``'s.

        None among peers of other libraries: they would not step back for it, and nobody
        should for whom they keep waiting.
        """
        if self.foreign is not None:
            return None
        behind = self.behind(own)
        first = max(behind, key=lambda entry: entry.priority, default=own)
        return first if first.priority > own.priority else None

    def of(self, uuid: str) -> tuple[Entry, ...]:
        """Return the entries made by one campaign, lowest first."""
        return tuple(entry for entry in self.entries if entry.uuid == uuid)

    @property
    def dialects(self) -> frozenset[str]:
        """The names of the dialects in which somebody stands."""
        return frozenset(entry.dialect for entry in self.entries)

    @property
    def foreign(self) -> Entry | None:
        """Return the first candidate of another library, if there is one."""
        return next((entry for entry in self.entries if not is_ours(entry.uuid)), None)

    @property
    def exhausted(self) -> Entry | None:
        """Return a candidate whose number cannot be ordered, if there is one."""
        return next((entry for entry in self.entries if entry.exhausted), None)


def is_ours(uuid: str) -> bool:
    """Tell a candidate of this library from a peer of another one.

    Ours carry a version 8 UUID (RFC 9562, section 5.8: random, for vendors), kazoo's a
    version 4 one; to kazoo itself both are just a prefix.
    """
    return _OURS.match(uuid) is not None


def ranked(uuid: str, priority: int) -> str:
    """Return our uuid with that priority in it: so every roll tells it, without a request.

    Those bits are for the maker of a version 8 UUID to use (RFC 9562, section 5.8,
    ``custom_b``); the other 110 stay random.
    """
    return f"{uuid[: _PRIORITY.start]}{priority:03x}{uuid[_PRIORITY.stop :]}"
