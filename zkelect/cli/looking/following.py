"""Following many elections on one session.

Leaders are told by watches; how many stand, and pauses, are asked for of what is shown.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from zkelect.cli.looking.listing import read_items
from zkelect.core.record import decode_record, record_path
from zkelect.core.znodes import KAZOO
from zkelect.errors import InvalidArgument
from zkelect.session.catalog import find_elections
from zkelect.session.gateway import Failure
from zkelect.session.observer import Observer
from zkelect.session.overview import ask_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zkelect.core.pause import Pause
    from zkelect.session.overview import Question
    from zkelect.session.session import Session

__all__ = ["Following", "Sight"]

_ASKED: Final = 2
"""Requests for each election that is shown: how many children, and the record."""


@attrs.define(kw_only=True)
class Sight:
    """One election as it was last seen.

    :ivar leader: its name, None: nobody leads. :ivar since: wall clock, seconds since 1970.
    :ivar candidates: None: not counted yet; children that are no candidates count, too.
    :ivar changed: wall clock of the last change of leader that we saw, None: none yet.
    :ivar known: whether it was read at all. :ivar error: why it cannot be read.
    """

    path: str
    leader: str | None = None
    phase: str | None = None
    since: float | None = None
    foreign: bool = False
    candidates: int | None = None
    paused: Pause | None = None
    changed: float | None = None
    known: bool = False
    error: str | None = None

    @property
    def vacant(self) -> bool:
        """Whether candidates stand, and nobody leads."""
        return self.known and self.leader is None and bool(self.candidates)


class Following:
    """The elections below a znode, as they are.

    :param depth: levels of znodes that are looked at. :param timeout: seconds for an answer.
    """

    def __init__(self, session: Session, root: str, depth: int, timeout: float) -> None:
        self._session = session
        self._where: Final = (root, depth, timeout)
        self._timeout = timeout
        self._observers: dict[str, Observer] = {}
        self._sights: dict[str, Sight] = {}
        self._news = False

    @property
    def sights(self) -> list[Sight]:
        """All of them: those that need somebody first, then by their paths."""
        with self._session.lock:
            self._news = False
            found = [attrs.evolve(sight) for sight in self._sights.values()]
        return sorted(found, key=lambda sight: (-_urgency(sight), sight.path))

    @property
    def connected(self) -> bool:
        """Whether changes are told."""
        return self._session.connected

    def find(self) -> None:
        """Look for elections that have come or gone; count the candidates of all.

        :raises InvalidArgument, PermissionDenied, ConnectFailed: the root cannot be read.
        """
        root, depth, timeout = self._where
        paths = find_elections(self._session, root, depth, timeout).paths
        for path in self._observers.keys() - set(paths):
            self._observers[path].__exit__()  # first: it hears of changes until then
            del self._observers[path], self._sights[path]
        for path in paths:
            if path not in self._observers:
                self._follow(path)
            elif self._observers[path].error is not None:
                self._again(path)
        self.count(paths)

    def count(self, paths: Sequence[str]) -> None:
        """Ask how many stand in each of these elections, and whether it is paused."""
        questions = [question for path in paths for question in _questions(path)]
        answers = ask_all(self._session, questions, self._timeout)
        with self._session.lock:
            for place, path in enumerate(paths):
                self._note_count(path, *answers[_ASKED * place : _ASKED * (place + 1)])
        self._read_foreign(paths)

    def wait(self, timeout: float) -> None:
        """Wait for news, at most so many seconds."""
        with self._session.changed:
            self._session.changed.wait_for(lambda: self._news or self._session.ended, timeout)
        self._session.ensure_usable()

    # --- within ------------------------------------------------------------------------------

    def _follow(self, path: str) -> None:
        self._sights[path] = Sight(path=path)
        observer = Observer(self._session, path, KAZOO, partial(self._heard, path))
        self._observers[path] = observer
        observer.__enter__()

    def _again(self, path: str) -> None:
        """Somebody of ours may stand for the first time by now: no watch would tell."""
        with self._session.lock:
            self._observers[path].resumed()

    def _heard(self, path: str) -> None:
        """Hear of a change; with the session's lock."""
        observer, sight = self._observers[path], self._sights[path]
        sight.error = None
        if observer.known:
            self._note_leader(sight, observer)
        elif observer.error is not None and not isinstance(observer.error, InvalidArgument):
            sight.error = str(observer.error)
        self._tell_news()

    def _note_leader(self, sight: Sight, observer: Observer) -> None:
        leader = observer.leader
        if sight.known and (leader is None or leader.since != sight.since):
            sight.changed = time.time()
        sight.known, sight.foreign = True, False
        sight.leader = None if leader is None else leader.name
        sight.since = None if leader is None else leader.since
        sight.phase = None if leader is None or leader.phase is None else str(leader.phase)

    def _note_count(self, path: str, details: Any, record: Any) -> None:
        sight = self._sights[path]
        if not isinstance(details, Failure):
            sight.candidates = 0 if details is None else details.children
        found = None if isinstance(record, Failure) else decode_record(record[0], 0)
        sight.paused = None if found is None else found.paused

    def _read_foreign(self, paths: Iterable[str]) -> None:
        """Other libraries write no term, so nothing tells that they lead: read it."""
        doubtful = [path for path in paths if self._is_doubtful(path)]
        for item in read_items(self._session, doubtful, self._timeout):
            facts = item.facts().get("leader")
            with self._session.lock:
                sight = self._sights[item.path]
                sight.error = item.error
                if self._observers[item.path].leader is None:
                    _note_foreign(sight, facts if facts and facts["foreign"] else None)

    def _is_doubtful(self, path: str) -> bool:
        sight, observer = self._sights[path], self._observers[path]
        unwritten = isinstance(observer.error, InvalidArgument)
        return unwritten or sight.vacant or sight.foreign

    def _tell_news(self) -> None:
        self._news = True
        self._session.changed.notify_all()


def _note_foreign(sight: Sight, facts: dict[str, Any] | None) -> None:
    sight.foreign = facts is not None
    sight.leader = None if facts is None else facts["name"] or ""
    sight.since = None if facts is None else facts["since"]


def _questions(path: str) -> tuple[Question, ...]:
    return (
        lambda gateway, done: gateway.details(path, done),
        lambda gateway, done: gateway.get(record_path(path), done),
    )


def _urgency(sight: Sight) -> int:
    if sight.error is not None:
        return 3
    if sight.vacant:
        return 2
    return 1 if sight.paused is not None or sight.phase == "preparing" else 0
