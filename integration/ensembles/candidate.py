"""Candidates in this process, each on its own session to several servers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Self

from election.actor import TICK
from election.diary import Diary
from election.waiting import WITHIN, until

import zkelect

__all__ = ["Candidate"]


class Candidate:
    """A candidate and its diary; like :class:`election.actor.Actor`, but nothing in between.

    :param options: of the election.
    """

    def __init__(
        self, hosts: str, path: str, name: str, *, session_timeout: float, **options: Any
    ) -> None:
        self.name = name
        self.diary = Diary()
        with ExitStack() as opened:
            self.session = opened.enter_context(
                zkelect.connect(
                    hosts, session_timeout=session_timeout, tick_time=TICK, timeout=WITHIN
                )
            )
            prepare = options.pop("prepare", self.diary.granted)
            self.election = zkelect.Election(
                self.session, path, name=name, prepare=prepare, **options
            )
            opened.enter_context(self.election.listen(self.diary))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def term(self) -> zkelect.Leadership | None:
        """The leadership that is proven at this moment, if there is one."""
        terms = [note.leadership for note in self.diary.all("elected")[-1:]]
        return next((term for term in terms if term.remaining() > 0), None)

    def start(self) -> Self:
        """Stand until the end of the test; again after every end."""
        self.election.start()
        return self

    def lead(self) -> zkelect.Leadership:
        """Stand, and wait until elected."""
        return self.start().diary.wait("elected").leadership

    def queue(self) -> Self:
        """Stand, and wait for a place behind somebody."""
        self.start().await_place()
        return self

    def await_place(self) -> None:
        """Wait for a place behind somebody."""
        until(lambda: self.election.phase is zkelect.Phase.WAITING, f"{self.name} waits")
