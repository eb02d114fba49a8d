"""A new history for an election: an operator's answer to an ensemble wiped or restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from zkelect.core.acts import ActKind
from zkelect.core.record import adopted, record_path
from zkelect.errors import InvalidArgument, LeaderPresent, NothingToAdopt, RequestFailed
from zkelect.session.acts import new_act, write_record
from zkelect.session.records import read_record
from zkelect.session.roll import read_leader
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.core.znodes import Dialect
    from zkelect.session.session import Session

__all__ = ["adopt"]

_TRIES: Final = 5


def adopt(
    session: Session,
    path: str,
    dialect: Dialect,
    marks: Sequence[Token],
    *,
    why: str,
    by: str | None,
    timeout: float,
) -> int:
    """Write the record that puts this election's tokens above the marks; return its generation.

    Written at the version that was read, so that of two operators one does it. A leader that
    is elected meanwhile learns it at its next probe and stands again; its old token no store
    accepts.
    """
    if not marks or not all(isinstance(mark, Token) for mark in marks):
        form = "the tokens that stores keep as marks, at least one: Token.parse() reads them"
        raise InvalidArgument("marks", marks, form)
    act = new_act(ActKind.ADOPT, why, by)
    _refuse_leader(session, path, dialect, timeout)
    for _ in range(_TRIES):
        present = read_record(session, path, "adopt", timeout)
        record = adopted(present, marks, zxid=session.zxid)
        if record is None:
            raise NothingToAdopt(path, max(marks), present.generation)
        highest = attrs.evolve(act, target=str(max(marks)))
        if write_record(session, path, record, highest, timeout):
            return record.generation
    raise RequestFailed(record_path(path), "adopt", f"it was changed {_TRIES} times meanwhile")


def _refuse_leader(session: Session, path: str, dialect: Dialect, timeout: float) -> None:
    leader = read_leader(session, path, dialect, timeout)
    if leader is not None and leader.token is not None:
        raise LeaderPresent(path, leader.name, leader.token)
