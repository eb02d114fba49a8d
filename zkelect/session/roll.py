"""Reading an election from outside: who leads, who stands behind."""

from __future__ import annotations

from typing import Any

import attrs

from zkelect.core.record import Term, TermPhase, decode_term
from zkelect.core.znodes import Dialect, Entry, is_ours
from zkelect.errors import PermissionDenied, RequestFailed
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault, Stat
from zkelect.session.session import Session
from zkelect.session.terms import term_path
from zkelect.token import Token

__all__ = ["Candidate", "leader_of", "others_stand", "read_entries", "read_leader", "read_roll"]


@attrs.frozen(kw_only=True)
class Candidate:
    """Somebody who stands in an election.

    :ivar node: its znode below the election's path. :ivar name: a label, never an identity.
    :ivar foreign: made by another library: it has no lease, and writes no term.
    :ivar address, token, phase, since: of the leader's term; since is wall clock, seconds.
    """

    node: str
    sequence: int
    name: str
    foreign: bool = False
    address: str = ""
    token: Token | None = None
    phase: TermPhase | None = None
    since: float | None = None

    def is_same_term(self, other: Candidate) -> bool:
        """Whether this is the same candidate in the same term, whatever its phase."""
        return (self.node, self.token) == (other.node, other.token)


def read_roll(
    session: Session, path: str, dialect: Dialect, timeout: float
) -> tuple[Candidate, ...]:
    """Return the candidates in order, the first one leading or about to."""
    entries = read_entries(session, path, dialect, timeout)
    names = _names(session, path, entries, timeout)
    return tuple(
        _candidate(entry, names[entry.node], None) for entry in entries if entry.node in names
    )


def read_leader(session: Session, path: str, dialect: Dialect, timeout: float) -> Candidate | None:
    """Return who leads, None when nobody does.

    Ours lead once their term is written; a candidate of another library writes none,
    and leads by being first.
    """
    entries = read_entries(session, path, dialect, timeout)[:1]
    names = _names(session, path, entries, timeout)
    if not names:
        return None
    leader = _candidate(entries[0], names[entries[0].node], _term(session, path, timeout))
    return leader if leader.foreign or leader.token is not None else None


def others_stand(
    session: Session, path: str, dialect: Dialect, own: str | None, timeout: float
) -> bool:
    """Return whether somebody else than our own candidate stands."""
    entries = read_entries(session, path, dialect, timeout)
    return any(entry.node != own for entry in entries)


def read_entries(
    session: Session, path: str, dialect: Dialect, timeout: float
) -> tuple[Entry, ...]:
    """Return who stands, in order; names are not read."""
    answer = ask(session, lambda g, done: g.children(path, done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        return ()
    return dialect.read(_value(session, path, answer)).entries


def _names(
    session: Session, path: str, entries: tuple[Entry, ...], timeout: float
) -> dict[str, str]:
    """Read the names of those still there; all questions go out before the first answer."""
    if not entries:
        return {}

    def send(gateway: Any, done: Any) -> None:
        answers: list[Any] = []
        for entry in entries:
            gateway.get(f"{path}/{entry.node}", answers.append)
        # Lost with the link, it is asked again; answered, so are all before it.
        gateway.exists(path, lambda last: done(last if isinstance(last, Failure) else answers))

    answers = _value(session, path, ask(session, send, timeout))
    return {
        entry.node: _value(session, path, answer)[0].decode("utf-8", "backslashreplace")
        for entry, answer in zip(entries, answers, strict=True)
        if not (isinstance(answer, Failure) and answer.fault is Fault.NO_NODE)
    }


def _term(session: Session, path: str, timeout: float) -> Term | None:
    answer: Any = ask(session, lambda g, done: g.get(term_path(path), done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
        return None
    data: tuple[bytes, Stat] = _value(session, term_path(path), answer)
    return decode_term(data[0])


def leader_of(term: Term, entry: Entry) -> Candidate:
    """Return the candidate whose term this is, as it was written."""
    return Candidate(
        node=entry.node,
        sequence=entry.sequence,
        name=term.name,
        address=term.address,
        token=term.token,
        phase=term.phase,
        since=term.since,
    )


def _candidate(entry: Entry, name: str, term: Term | None) -> Candidate:
    if term is not None and term.node == entry.node and term.ended is None:
        return attrs.evolve(leader_of(term, entry), name=name, foreign=not is_ours(entry.uuid))
    return Candidate(
        node=entry.node, sequence=entry.sequence, name=name, foreign=not is_ours(entry.uuid)
    )


def _value(session: Session, path: str, answer: Any) -> Any:
    if not isinstance(answer, Failure):
        return answer
    if answer.fault is Fault.DENIED:
        raise PermissionDenied(path, "read", session.schemes) from answer.cause
    raise RequestFailed(path, "read", str(answer)) from answer.cause
