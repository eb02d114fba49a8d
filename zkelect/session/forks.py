"""A forked child inherits sessions that are its parent's: they are cut loose at once."""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol

__all__ = ["enrol", "strike_off"]


class Inherited(Protocol):
    """What a child finds in its memory, and must not touch."""

    def forked(self) -> None: ...


_OPEN: Final = weakref.WeakSet["Inherited"]()


def enrol(session: Inherited) -> None:
    """Tell it in each child that is forked from now on."""
    _OPEN.add(session)


def strike_off(session: Inherited) -> None:
    """Tell it no more: it is closed."""
    _OPEN.discard(session)


def _leave_parent_alone() -> None:
    for session in tuple(_OPEN):
        session.forked()


os.register_at_fork(after_in_child=_leave_parent_alone)
