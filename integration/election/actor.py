"""Candidates in this process, each on its own session behind its own forwarder."""

from __future__ import annotations

import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, Self

from election.diary import Diary
from election.waiting import WITHIN, boottime, until

import zkelect
from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SESSION_TIMEOUT", "TICK", "Actor", "Campaign"]

TICK: Final = 0.2
SESSION_TIMEOUT: Final = 2.0


class Actor:
    """A candidate: its own session behind its own forwarder, and its diary.

    :param server: one server. :param options: of the election.
    """

    def __init__(
        self,
        server: str,
        path: str,
        name: str,
        *,
        prepare: Callable[[zkelect.Leadership], None] | None = None,
        session_timeout: float = SESSION_TIMEOUT,
        **options: Any,
    ) -> None:
        self.name = name
        self.diary = Diary()
        self._prepare = prepare
        with ExitStack() as opened:
            self.forwarder = opened.enter_context(Forwarder(server))
            self.session = opened.enter_context(self._connect(session_timeout))
            self.election = zkelect.Election(
                self.session, path, name=name, prepare=self._catch_up, **options
            )
            opened.enter_context(self.election.listen(self.diary))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.forwarder.heal()
        self._opened.close()

    def listen(self, callbacks: zkelect.Callbacks) -> None:
        """Call somebody else back, too, until the end of the test."""
        self._opened.enter_context(self.election.listen(callbacks))

    def start(self) -> Self:
        """Stand, without a thread, until the end of the test; again after every end."""
        self.election.start()
        return self

    def lead(self) -> zkelect.Leadership:
        """Stand, and wait until elected."""
        return self.start().diary.wait("elected").leadership

    def queue(self) -> Self:
        """Stand, and wait for a place behind somebody."""
        self.start()
        until(lambda: self.election.phase is zkelect.Phase.WAITING, f"{self.name} waits")
        return self

    def _connect(self, session_timeout: float) -> zkelect.Session:
        return zkelect.connect(
            self.forwarder.hosts, session_timeout=session_timeout, tick_time=TICK, timeout=WITHIN
        )

    def _catch_up(self, leadership: zkelect.Leadership) -> None:
        self.diary.granted(leadership)
        if self._prepare is not None:
            self._prepare(leadership)


class Campaign:
    """``election.campaign()`` on a thread of its own, which leads until it is told to leave.

    :ivar elected: the leadership, or what campaign() raised.
    :ivar left: the instant at which the block was left, or what leaving raised.
    """

    def __init__(self, election: zkelect.Election, timeout: float | None = None) -> None:
        self.elected: Future[zkelect.Leadership] = Future()
        self.left: Future[float] = Future()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._stand, args=(election, timeout), daemon=True)
        self._thread.start()

    def leadership(self) -> zkelect.Leadership:
        """Wait until elected."""
        return self.elected.result(WITHIN)

    def leave(self, timeout: float = WITHIN) -> None:
        """Leave the block, and wait until that is done."""
        self._leaving.set()
        self.left.result(timeout)

    def _stand(self, election: zkelect.Election, timeout: float | None) -> None:
        try:
            with election.campaign(timeout) as leadership:
                self.elected.set_result(leadership)
                self._leaving.wait()
            self.left.set_result(boottime())
        except zkelect.ZkelectError as error:
            self.left.set_exception(error)
            with suppress(InvalidStateError):  # elected, and left with an error
                self.elected.set_exception(error)
