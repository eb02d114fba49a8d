"""Candidates in memory: the real session and election, a fake ensemble, a clock to turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import zkelect
from zkelect.session.session import Session
from zkelect.testing import FakeEnsemble
from zkelect.testing.fake_client import FakeClient
from zkelect.testing.fake_link import FakeLink
from zkelect.testing.fake_machine import Move
from zkelect.testing.fake_server import Question

__all__ = ["PATH", "TICK", "Member", "T", "Troupe", "client_of"]

TICK: Final = 0.2
T: Final = 2.0
PATH: Final = "/elections/billing"
_WITHIN: Final = 20 * T


class Member:
    """One candidate, and what its callbacks were told.

    :ivar notes: ("elected", leadership), and so on, in order.
    """

    def __init__(self, fake: FakeEnsemble, session: Session, name: str, **options: Any) -> None:
        self.fake = fake
        self.session = session
        self.election = zkelect.Election(session, PATH, name=name, **options)
        self.notes: list[tuple[str, zkelect.Leadership]] = []
        self._listening = self.election.listen(self)
        self._listening.__enter__()

    def start(self) -> Member:
        """Stand; nothing has happened yet."""
        self.election.start()
        return self

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.notes.append(("elected", leadership))

    def suspended(self, leadership: zkelect.Leadership) -> None:
        self.notes.append(("suspended", leadership))

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self.notes.append(("deposed", leadership))

    @property
    def terms(self) -> list[zkelect.Leadership]:
        """Each term it was told of."""
        return [leadership for what, leadership in self.notes if what == "elected"]

    @property
    def ends(self) -> list[str]:
        """How each of them ended, as it was told."""
        return [str(term.reason) for what, term in self.notes if what == "deposed"]

    @property
    def phase(self) -> zkelect.Phase:
        return self.election.phase


class Troupe:
    """Candidates for one election.

    :ivar asked: what each session has asked of the servers: names of requests, in order.
    """

    def __init__(self, fake: FakeEnsemble, patch: pytest.MonkeyPatch) -> None:
        self.fake = fake
        self.asked: dict[Session, list[str]] = {}
        self._patch = patch

    def connect(self, timeout: float = T, **options: Any) -> Session:
        session = self.fake.connect(session_timeout=timeout, tick_time=TICK, **options)
        client, asked = client_of(session), self.asked.setdefault(session, [])
        send = client.send

        def note(question: Question, **more: Any) -> Any:
            asked.append(question.name)
            return send(question, **more)

        self._patch.setattr(client, "send", note)
        return session

    def cast(self, name: str, session: Session | None = None, **options: Any) -> Member:
        """Make a candidate that does not stand yet, on a session of its own if none is given."""
        return Member(self.fake, self.connect() if session is None else session, name, **options)

    def lead(self, name: str = "A", **options: Any) -> Member:
        """Let a candidate stand until it leads."""
        member = self.cast(name, **options).start()
        self.until(lambda: member.terms, f"{name} is elected")
        return member

    def queue(self, name: str, **options: Any) -> Member:
        """Let a candidate stand until it waits."""
        member = self.cast(name, **options).start()
        self.until(lambda: member.phase is zkelect.Phase.WAITING, f"{name} waits")
        return member

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Let time pass until something holds."""
        until = self.fake.clock.now + _WITHIN
        self.fake.settle()
        while not condition():
            assert self.fake.clock.now < until, f"it never came about that {what}"
            self.fake.advance(0.02)

    def let(self, session: Session, move: Move) -> None:
        """Let the next move of that kind happen, and nothing else."""
        self.fake.take(next(s for s in self.fake.steps if (s.session, s.move) == (session, move)))


def client_of(session: Session) -> FakeClient:
    """What stands in the place of kazoo."""
    link = session.link
    assert isinstance(link, FakeLink)
    return link.fake
