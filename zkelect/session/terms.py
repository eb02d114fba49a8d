"""Bookkeeping beside an election: who leads, and the terms that have been.

Nothing here decides who leads. Every write is one multi with a check of the writer's
own candidate and of the version it read, so a stale leader cannot write it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

import attrs

from zkelect.core import events as ev
from zkelect.core.history import extend_history, is_closed
from zkelect.core.record import Term, TermPhase, decode_term, encode_term, record_path
from zkelect.session.gateway import Check, Delete, Failure, Fault, Gateway, Operation, Put, Stat
from zkelect.token import Token

__all__ = ["DIED", "TermBook", "history_path", "new_term", "term_path"]

_log: Final = logging.getLogger("zkelect.session")
_TRIES: Final = 3

DIED: Final = "died"
"""The end of a leader that did not write its own; its successor does."""


def term_path(path: str) -> str:
    """Return where the present term of an election is written."""
    return f"{record_path(path)}/term"


def history_path(path: str) -> str:
    """Return where the past terms of an election are written."""
    return f"{record_path(path)}/history"


def new_term(grant: ev.Grant, name: str, address: str, longest_lease: float | None) -> Term:
    """Return the term that a grant begins; it does not serve yet."""
    assert grant.stamp.session_id is not None  # a candidate has a session
    token = Token.issue(
        lineage=grant.record.lineage,
        generation=grant.record.generation,
        czxid=grant.czxid,
        session_id=grant.stamp.session_id,
    )
    return Term(
        token=token,
        node=grant.node,
        name=name,
        address=address,
        phase=TermPhase.PREPARING,
        since=time.time(),
        longest_lease=longest_lease,
    )


@attrs.frozen(kw_only=True)
class _Pages:
    term: Term | None
    term_version: int
    history: bytes
    history_version: int


class TermBook:
    """Writes one candidate's terms, without ever making anybody wait.

    :param path: the election.
    """

    def __init__(self, gateway: Gateway, path: str) -> None:
        self._gateway = gateway
        self._path = path

    def announce(self, term: Term) -> None:
        """Write that this term has begun, or that it serves now; close a dead one before it.

        That a term is over is not written there but in the history: who observes the leader
        hears that its znode is gone, and of the next term, and has nothing to read between.
        """
        self._write(lambda pages: self._announcement(pages, term), _report, _TRIES)

    def close(self, term: Term, reason: str, done: Callable[[Failure | None], None]) -> None:
        """Write the end of our term and delete our candidate in the same commit.

        ``done`` gets None when the candidate is gone. If the book cannot be written the
        candidate is deleted all the same: leaving matters more.
        """
        ended = attrs.evolve(term, ended=time.time(), reason=reason)

        def finish(failure: Failure | None) -> None:
            if failure is None or failure.fault is Fault.UNKNOWN:
                done(failure)
                return
            _report(failure)
            self._gateway.delete(self._candidate(term), lambda answer: done(_failure_of(answer)))

        self._write(lambda pages: self._ending(pages, ended), finish, _TRIES)

    def _candidate(self, term: Term) -> str:
        return f"{self._path}/{term.node}"

    def _announcement(self, pages: _Pages, term: Term) -> list[Operation]:
        old = pages.term
        count = 1 if old is None else old.count
        if old is not None and old.token != term.token:
            count += 1
        operations: list[Operation] = [
            Check(path=self._candidate(term)),
            Put(
                path=term_path(self._path),
                data=encode_term(attrs.evolve(term, count=count)),
                version=pages.term_version,
            ),
        ]
        if old is not None and old.token != term.token and not is_closed(pages.history, old.token):
            dead = attrs.evolve(old, ended=time.time(), reason=DIED)
            operations.append(self._history(pages, dead))
        return operations

    def _ending(self, pages: _Pages, ended: Term) -> list[Operation]:
        count = pages.term.count if pages.term is not None else 1
        ended = attrs.evolve(ended, count=count)
        return [
            Check(path=self._candidate(ended)),
            self._history(pages, ended),
            Delete(path=self._candidate(ended)),
        ]

    def _history(self, pages: _Pages, term: Term) -> Put:
        return Put(
            path=history_path(self._path),
            data=extend_history(pages.history, term),
            version=pages.history_version,
        )

    def _write(
        self,
        compose: Callable[[_Pages], list[Operation]],
        done: Callable[[Failure | None], None],
        tries: int,
    ) -> None:
        """Read both pages, write what follows from them, again if somebody was faster."""

        def written(answer: Any) -> None:
            failure = _failure_of(answer)
            if failure is not None and failure.fault is Fault.BAD_VERSION and tries > 1:
                self._write(compose, done, tries - 1)
            else:
                done(failure)

        def turned(term: Any, history: Any) -> None:
            failure = _failure_of((term, history))
            if failure is not None:
                done(failure)
            else:
                self._gateway.multi(compose(_pages(term, history)), written)

        self._read(turned)

    def _read(self, done: Callable[[Any, Any], None]) -> None:
        first: list[Any] = []
        self._gateway.get(term_path(self._path), first.append)
        self._gateway.get(history_path(self._path), lambda history: done(first[0], history))


def _pages(term: tuple[bytes, Stat], history: tuple[bytes, Stat]) -> _Pages:
    return _Pages(
        term=decode_term(term[0]),
        term_version=term[1].version,
        history=history[0],
        history_version=history[1].version,
    )


def _failure_of(answer: Any) -> Failure | None:
    """Return the failure that counts: an item's own, not one rolled back with it."""
    items = answer if isinstance(answer, tuple) else (answer,)
    failures = [item for item in items if isinstance(item, Failure)]
    own = [failure for failure in failures if failure.fault is not Fault.ROLLED_BACK]
    return next(iter(own or failures), None)


def _report(failure: Failure | None) -> None:
    if failure is None or failure.fault is Fault.UNKNOWN:
        return
    gone = failure.fault is Fault.NO_NODE  # the candidate has left meanwhile
    _log.log(
        logging.DEBUG if gone else logging.WARNING,
        "the election's book of terms could not be written: %s",
        failure,
    )
