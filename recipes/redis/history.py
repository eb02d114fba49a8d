"""Where a server stands, comparable with the others; and what has to be kept for that.

A replication id is a branch. A server names its own and the one before, with the offset at which
*it* went over, which of a follower is where it had come to by then, not where the branch forked;
and after a full copy it names none before. So who was promoted keeps the true history, and who
follows learns it from the page. Offsets of different branches are never compared.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.recipes.notes import decode, encode
from zkelect.recipes.position import Branch, Position

if TYPE_CHECKING:
    from pathlib import Path

    from zkelect.recipes.redis.state import State

__all__ = ["Kept", "Record", "locate"]

_LONGEST: Final = 16
_AFTER_CUT: Final = 2


@attrs.frozen(kw_only=True)
class Kept:
    """What is on the disk.

    :ivar known: a position whose history is that of the last primary that we know.
    :ivar reigned: id of the run that was promoted here last; empty: none was.
    """

    known: Position | None = None
    reigned: str = ""


def locate(state: State, known: Position | None) -> Position:
    """Return what the server has.

    :param known: a position with as much of the history as we know.
    """
    history = () if known is None else known.history
    if (before := _up_to(history, state.replid)) is not None:
        return Position(before, state.offset)
    if not state.replid2:
        return Position((Branch(state.replid),), state.offset)
    before = _up_to(history, state.replid2) or (Branch(state.replid2),)
    return Position(_shortened((*before, Branch(state.replid, state.fork))), state.offset)


def _up_to(history: tuple[Branch, ...], replid: str) -> tuple[Branch, ...] | None:
    ids = [branch.id for branch in history]
    return history[: ids.index(replid) + 1] if replid in ids else None


def _shortened(history: tuple[Branch, ...]) -> tuple[Branch, ...]:
    """Forget the oldest now and then; who has not followed since is given a full copy."""
    if len(history) <= _LONGEST:
        return history
    first, *rest = history[-_AFTER_CUT:]
    return (Branch(first.id), *rest)


class Record:
    """The file in which it is kept.

    :param path: of the file; its folder is there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = self._read()

    @property
    def kept(self) -> Kept:
        """What is kept."""
        return self._kept

    def keep(self, kept: Kept) -> None:
        """Keep this instead, on the disk when it returns."""
        if kept == self._kept:
            return
        draft = self._path.with_name(f"{self._path.name}.new")
        with draft.open("wb") as file:
            file.write(encode(kept))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        self._kept = kept

    def learn(self, position: Position | None) -> None:
        """Keep the history of a primary that is to be followed."""
        if position is not None:
            self.keep(attrs.evolve(self._kept, known=position))

    def forget_reign(self) -> None:
        """We follow somebody: that we were the primary once counts no more."""
        self.keep(attrs.evolve(self._kept, reigned=""))

    def _read(self) -> Kept:
        try:
            return decode(Kept, self._path.read_bytes())
        except FileNotFoundError:
            return Kept()
