"""Timelines as branches: which server's history is a part of which.

A promotion begins a new timeline and leaves the old one at a position; the file
``00000003.history`` says where each ancestor of timeline 3 was left (PostgreSQL, "Timelines").
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import Self

import attrs

from zkelect import InvalidArgument
from zkelect.recipes.position import Branch, Position, Relation, compare
from zkelect.recipes.postgres.lsn import Lsn

__all__ = ["Fork", "History", "Verdict", "judge", "timeline_of"]


@attrs.frozen
class Fork:
    """Where a timeline was left for the next one.

    :ivar timeline: the one that was left. :ivar at: its first byte that is not ours any more.
    """

    timeline: int
    at: Lsn


@attrs.frozen
class History:
    """A timeline with its ancestors.

    :ivar timeline: the present one. :ivar forks: of its ancestors, oldest first.
    """

    timeline: int
    forks: tuple[Fork, ...] = ()

    @classmethod
    def parse(cls, timeline: int, text: str) -> Self:
        """Read a history file; timeline 1 has none, so its text is empty.

        :raises InvalidArgument: a line is not "timeline, position, reason", or they do not rise.
        """
        lines = (line.split(None, 2) for line in text.splitlines())
        forks = tuple(_parse_fork(words) for words in lines if words and words[0][0] != "#")
        ids = (*(fork.timeline for fork in forks), timeline)
        if any(later <= earlier for earlier, later in pairwise(ids)):
            raise InvalidArgument("history", text, f"timelines that rise, all below {timeline}")
        return cls(timeline, forks)

    def position(self, system: str, at: Lsn) -> Position:
        """Return the place on this history, comparable with other servers'.

        :param system: the system identifier: other clusters have other roots.
        """
        ids = (*(fork.timeline for fork in self.forks), self.timeline)
        later = [
            Branch(str(number), fork.at.byte)
            for number, fork in zip(ids[1:], self.forks, strict=True)
        ]
        return Position((Branch(f"{system}-{ids[0]}"), *later), at.byte)


class Verdict(StrEnum):
    """What it takes to follow another server."""

    FOLLOW = "follow"
    REWIND = "rewind"
    REBUILD = "rebuild"


def judge(ours: Position, theirs: Position) -> Verdict:
    """Tell what a server at our position must do to follow the one at theirs.

    pg_rewind takes two servers with one timeline number for two with one history, and does
    nothing (pg_rewind, "How It Works"): there only a new copy helps. Two servers that were
    promoted at the same byte to the same number are not told apart here; see :mod:`.agreement`.
    """
    relation = compare(ours, theirs)
    if relation in (Relation.EQUAL, Relation.BEHIND):
        return Verdict.FOLLOW
    if relation is Relation.UNRELATED or timeline_of(ours) == timeline_of(theirs):
        return Verdict.REBUILD
    return Verdict.REWIND


def timeline_of(position: Position) -> int:
    """Return the number of the timeline that a position is on."""
    return int(position.history[-1].id.rpartition("-")[2])


def _parse_fork(words: list[str]) -> Fork:
    if len(words) < 2 or not words[0].isdecimal():
        raise InvalidArgument("history", " ".join(words), "lines of timeline, position, reason")
    return Fork(int(words[0]), Lsn.parse(words[1]))
