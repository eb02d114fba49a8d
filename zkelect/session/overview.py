"""An election as somebody sees it who only looks: all of its pages, and who stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from zkelect.core.handover import Handover, decode_handover, handover_path
from zkelect.core.record import Record, Term, decode_record, decode_term, record_path
from zkelect.core.znodes import KAZOO, LAST_SEQUENCE, Entry, Roll, is_ours
from zkelect.errors import PermissionDenied, RequestFailed, ZkelectError
from zkelect.session.asking import ask
from zkelect.session.details import Details
from zkelect.session.gateway import Failure, Fault
from zkelect.session.records import never_stood
from zkelect.session.terms import term_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from zkelect.session.details import Details
    from zkelect.session.gateway import Done, Gateway
    from zkelect.session.session import Session

    Question = Callable[[Gateway, Done], None]

__all__ = ["Overview", "Standing", "ask_all", "read_overview", "read_overviews", "read_standings"]

LONGEST_NAME: Final = 8192
"""Bytes of a name that are kept: ours have no more, other clients may write a megabyte."""

_UNSIGNED: Final = 2**64 - 1


@attrs.frozen(kw_only=True)
class Standing:
    """What a candidate's znode tells beyond its name.

    :ivar name: its first 8 KiB; None: we may not read it. :ivar size: of all of it, bytes.
    :ivar session_id: whose znode it is, 0: no session's. Whoever knows it can close that
        session, so it is never shown unless asked for.
    :ivar since: wall clock of the servers, seconds since 1970: for people.
    """

    name: str | None
    size: int = 0
    session_id: int = attrs.field(default=0, repr=False)
    since: float | None = None

    @property
    def session(self) -> str | None:
        """The session id as ZooKeeper's own tools write it; None: no session's."""
        return f"0x{self.session_id & _UNSIGNED:x}" if self.session_id else None

    @property
    def shortened(self) -> bool:
        """Whether there is more of the name."""
        return self.size > LONGEST_NAME


@attrs.frozen(kw_only=True)
class Overview:
    """An election at one instant, as far as several reads on one connection are one.

    :ivar record: None: no candidate of ours has ever stood. :ivar term: of the first in the
        queue, None when it has written none. :ivar terms: how many there have been.
    :ivar handover: the latest switchover, of whatever leader.
    :ivar counter: what number the next candidate gets; modulo 2^31.
    """

    path: str
    roll: Roll
    record: Record | None = None
    term: Term | None = None
    terms: int = 0
    handover: Handover | None = None
    counter: int = 0

    @property
    def first(self) -> Entry | None:
        """The first in the queue: it leads, or is about to."""
        return next(iter(self.roll.entries), None)

    @property
    def leader(self) -> Entry | None:
        """Who leads.

        Ours lead once their term is written; a candidate of another library writes none, and
        leads by being first.
        """
        first = self.first
        leads = first is not None and (self.term is not None or not is_ours(first.uuid))
        return first if leads else None

    @property
    def pending(self) -> Handover | None:
        """The switchover that the present leader has to drive, or drives."""
        handover, term = self.handover, self.term
        mine = handover is not None and term is not None and handover.token == term.token
        return handover if handover is not None and mine and handover.pending else None

    @property
    def exhausted(self) -> bool:
        """Whether the numbers are used up, so that nobody more can be elected."""
        return self.roll.exhausted is not None or self.counter > LAST_SEQUENCE


def read_overview(session: Session, path: str, timeout: float) -> Overview:
    """Read everything but what stands in the candidates' znodes, in one round trip.

    :param path: in its one right spelling.
    :raises InvalidArgument: there is no election. :raises PermissionDenied: it may not be read.
    :raises ConnectFailed: no answer came.
    """
    (found,) = read_overviews(session, [path], timeout)
    if isinstance(found, ZkelectError):
        raise found
    return found


def read_overviews(
    session: Session, paths: Sequence[str], timeout: float
) -> list[Overview | ZkelectError]:
    """Read several of them, together; in place of one that cannot be read is why."""
    questions = [question for path in paths for question in _questions(path)]
    answers = ask_all(session, questions, timeout)
    each = len(answers) // max(len(paths), 1)
    rows = (answers[start : start + each] for start in range(0, len(answers), each or 1))
    return [_judge(session, path, row) for path, row in zip(paths, rows, strict=True)]


def read_standings(
    session: Session, path: str, entries: Iterable[Entry], timeout: float
) -> dict[str, Standing]:
    """Read what stands in these candidates' znodes, one request each, by znode.

    Who has left meanwhile is left out.
    """
    nodes = [entry.node for entry in entries]
    answers = ask_all(session, [_read(f"{path}/{node}") for node in nodes], timeout)
    found = (
        (node, _standing(session, path, answer))
        for node, answer in zip(nodes, answers, strict=True)
    )
    return {node: standing for node, standing in found if standing is not None}


def ask_all(session: Session, questions: Sequence[Question], timeout: float) -> list[Any]:
    """Ask all before the first answer is waited for; an answer is a value or a Failure.

    :raises ConnectFailed: not all came within ``timeout`` seconds.
    """
    if not questions:
        return []

    def send(gateway: Gateway, done: Done) -> None:
        answers: list[Any] = []

        def finish(last: Any) -> None:
            lost = isinstance(last, Failure) and last.fault is Fault.UNKNOWN
            done(last if lost else [*answers, last])  # answered in order: so are all before it

        for question in questions[:-1]:
            question(gateway, answers.append)
        questions[-1](gateway, finish)

    answers: list[Any] = ask(session, send, timeout)
    return answers


# --- within --------------------------------------------------------------------------------


def _questions(path: str) -> tuple[Question, ...]:
    return (
        lambda gateway, done: gateway.details(path, done),
        lambda gateway, done: gateway.children(path, done),
        *map(_read, (record_path(path), term_path(path), handover_path(path))),
    )


def _read(path: str) -> Question:
    return lambda gateway, done: gateway.get(path, done)


def _judge(session: Session, path: str, answers: Sequence[Any]) -> Overview | ZkelectError:
    for where, answer in zip((path, path, record_path(path)), answers[:3], strict=True):
        if isinstance(answer, Failure) and answer.fault is not Fault.NO_NODE:
            return _error(session, where, answer)
    parent, children, *pages = (None if isinstance(each, Failure) else each for each in answers)
    if parent is None and pages[0] is None:
        return never_stood(path)
    return _overview(path, parent, children or (), pages)


def _overview(
    path: str, parent: Details | None, children: Sequence[str], pages: Sequence[Any]
) -> Overview:
    record, term, handover = pages
    roll = KAZOO.read(children)
    last = None if term is None else decode_term(term[0])
    first = next(iter(roll.entries), None)
    return Overview(
        path=path,
        roll=roll,
        record=None if record is None else decode_record(record[0], record[1].version),
        term=last if last is not None and first is not None and last.node == first.node else None,
        terms=0 if last is None else last.count,
        handover=None if handover is None else decode_handover(handover[0], handover[1].version),
        counter=0 if parent is None else parent.next_sequence,
    )


def _standing(session: Session, path: str, answer: Any) -> Standing | None:
    if not isinstance(answer, Failure):
        data, stat = answer
        name = data[:LONGEST_NAME].decode("utf-8", "backslashreplace")
        return Standing(name=name, size=len(data), session_id=stat.owner, since=stat.created)
    if answer.fault is Fault.DENIED:
        return Standing(name=None)
    if answer.fault is Fault.NO_NODE:
        return None
    raise _error(session, path, answer)


def _error(session: Session, path: str, failure: Failure) -> ZkelectError:
    error: ZkelectError
    if failure.fault is Fault.DENIED:
        error = PermissionDenied(path, "read", session.schemes)
    else:
        error = RequestFailed(path, "read", str(failure))
    error.__cause__ = failure.cause
    return error
