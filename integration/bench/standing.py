"""Candidates of this process, each with its own session behind its own forwarder."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, Self

import zkelect
from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from zkelect.testing import Frame

__all__ = ["TICK", "TIMEOUT", "WITHIN", "Candidate"]

TICK: Final = 0.5
TIMEOUT: Final = 10.0
WITHIN: Final = 60.0
"""Seconds: a bound against a hang, never a measure."""


class Candidate:
    """A session behind a forwarder that counts, to stand with."""

    def __init__(self, server: str, name: str, *, timeout: float = TIMEOUT) -> None:
        self._stack = ExitStack()
        self._name = name
        self.forwarder = self._stack.enter_context(Forwarder(server))
        self.session = self._stack.enter_context(
            zkelect.connect(self.forwarder.hosts, session_timeout=timeout, tick_time=TICK)
        )
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def frames(self) -> tuple[Frame, ...]:
        """Return what has passed since :meth:`mark`."""
        return self.forwarder.log[self._seen :]

    def mark(self) -> None:
        """Forget what has passed."""
        self._seen = len(self.forwarder.log)

    def stand(self, path: str, *, heir: bool = False) -> Campaign:
        """Stand, and return when the znode has its place in the queue.

        :param heir: right behind the leader, where the record is read once more.
        """
        told = self.forwarder.replies["getData"] + 3 + heir
        campaign = Campaign(self.session, path, self._name)
        self.forwarder.wait_for(
            lambda: campaign.elected.done() or self.forwarder.replies["getData"] >= told,
            timeout=WITHIN,
        )
        return campaign

    def await_probe(self) -> None:
        """Return just after a probe was answered: the next one is a while away."""
        answered = self.forwarder.replies["multi"]
        self.forwarder.wait_for(lambda: self.forwarder.replies["multi"] > answered, timeout=WITHIN)


class Campaign:
    """One campaign on a thread.

    :ivar granted: the instant of the grant. :ivar elected: the leadership.
    """

    def __init__(self, session: zkelect.Session, path: str, name: str) -> None:
        self.granted: Future[float] = Future()
        self.elected: Future[zkelect.Leadership] = Future()
        self.election = zkelect.Election(session, path, name=name, prepare=self._note)
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._stand, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Resign, or stop waiting; return when the znode is gone."""
        self._leaving.set()
        self.election.resign()
        self._thread.join(WITHIN)

    def _note(self, leadership: zkelect.Leadership) -> None:
        """Before it serves: no progress was told since the term began."""
        self.granted.set_result(leadership.progressed)

    def _stand(self) -> None:
        left_early = zkelect.NotElected, zkelect.SessionClosed
        with suppress(*left_early), self.election.campaign() as leadership:
            self.elected.set_result(leadership)
            self._leaving.wait()
