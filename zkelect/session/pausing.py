"""Pausing an election: who leads stays, and nobody new is elected until it is resumed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.core.acts import ActKind
from zkelect.core.pause import Pause
from zkelect.core.record import record_path
from zkelect.core.znodes import Roll
from zkelect.errors import ElectionPaused, ForeignCandidate, RequestFailed
from zkelect.session.acts import new_act, write_record
from zkelect.session.operator import operator
from zkelect.session.records import confirm_record, read_record
from zkelect.session.roll import read_entries, read_leader

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.core.acts import Act
    from zkelect.core.znodes import Dialect
    from zkelect.session.roll import Candidate
    from zkelect.session.session import Session

__all__ = ["pause", "read_pause", "resume"]

_log: Final = logging.getLogger("zkelect")
_TRIES: Final = 5


def pause(
    session: Session, path: str, dialect: Dialect, why: str, by: str | None, timeout: float
) -> Candidate | None:
    """Write the pause into the record; return who leads by then.

    Whoever hears that it is the first after this commit has heard of the pause before.
    """
    act = new_act(ActKind.PAUSE, why, by)
    ours = Pause(by=operator() if by is None else by, why=why, since=act.at)
    _refuse_foreign(session, path, dialect, timeout)

    def agree(present: Pause | None) -> Pause:
        if present is None:
            return ours
        if present.by != ours.by:
            raise ElectionPaused(path, present)
        return present

    _change(session, path, agree, act, timeout)
    return read_leader(session, path, dialect, timeout)


def resume(session: Session, path: str, why: str, by: str | None, timeout: float) -> Pause | None:
    """Take the pause out of the record; return the one that is over, None if there was none."""
    act = new_act(ActKind.RESUME, why, by)
    over = _change(session, path, lambda _: None, act, timeout)
    if over is not None:
        _log.info("%s: %s; it was %s", path, act, over)
    return over


def read_pause(session: Session, path: str, timeout: float) -> Pause | None:
    """Return the pause that is in the record, None if there is none."""
    return read_record(session, path, "read", timeout).paused


def _refuse_foreign(session: Session, path: str, dialect: Dialect, timeout: float) -> None:
    foreign = Roll(entries=read_entries(session, path, dialect, timeout)).foreign
    if foreign is not None:
        raise ForeignCandidate(path, "pause", foreign.node)


def _change(
    session: Session,
    path: str,
    agree: Callable[[Pause | None], Pause | None],
    act: Act,
    timeout: float,
) -> Pause | None:
    """Write what is agreed to, at the version that was read; return what was there before.

    What changes nothing is no act, and not written to the history.
    """
    for _ in range(_TRIES):
        record = read_record(session, path, act.kind, timeout)
        wanted = attrs.evolve(record, paused=agree(record.paused))
        done = (
            confirm_record(session, path, record, timeout)
            if wanted == record
            else write_record(session, path, wanted, act, timeout)
        )
        if done:
            return record.paused
    raise RequestFailed(record_path(path), act.kind, f"it was changed {_TRIES} times meanwhile")
