"""Hosts of the model: each a machine with a session, a candidate, and a body that works."""

from __future__ import annotations

from typing import Final

import zkelect
from zkelect.core.state import Phase, State
from zkelect.core.znodes import KAZOO
from zkelect.session.candidacy import Candidacy
from zkelect.session.supervision import Conditions
from zkelect.testing import FakeEnsemble

__all__ = ["PATH", "SESSION_TIMEOUT", "TICK", "Host"]

PATH: Final = "/election"
TICK: Final = 2.0
SESSION_TIMEOUT: Final = 4.0


class Host:
    """One machine. It acts when it is told, and notes what it is told.

    :ivar leadership: the term whose body may be running; None when no body runs.
    :ivar terms: every leadership that was granted. :ivar ends: those that were voided.
    :ivar claimed: whether the present body has claimed the fence.
    :ivar proven: until when the present body may count on its lease, as it last knew.
    """

    def __init__(self, fake: FakeEnsemble, name: str, *, tick: float | None, server: int) -> None:
        self.name = name
        self.fake = fake
        self.session = fake.connect(session_timeout=SESSION_TIMEOUT, tick_time=tick, server=server)
        self.candidacy = Candidacy(
            self.session,
            path=PATH,
            name=name,
            address="",
            identity=name.encode(),
            dialect=KAZOO,
            prepares=True,
            conditions=Conditions(),
        )
        self.candidacy.attendant = self
        self.leadership: zkelect.Leadership | None = None
        self.terms: list[zkelect.Leadership] = []
        self.ends: list[zkelect.Leadership] = []
        self.errors: list[BaseException] = []
        self.claimed = False
        self.dead = self.paused = self.cut = self.held = False
        self.proven = 0.0
        self.campaign = 0

    def __repr__(self) -> str:
        return f"{self.name}{' (dead)' if self.dead else ''}: {self.state.phase}"

    # --- what it is told ---------------------------------------------------------------------

    def granted(self, leadership: zkelect.Leadership) -> None:
        assert self.leadership is None, f"{self.name} is granted a term while a body runs"
        assert leadership.remaining() > 0, f"{self.name} is granted a term without a lease"
        self.leadership = leadership
        self.terms.append(leadership)
        self.claimed = False

    def voided(self, leadership: zkelect.Leadership) -> None:
        assert leadership is self.terms[-1]
        assert leadership not in self.ends, f"{self.name} is deposed twice"
        self.ends.append(leadership)

    def failed(self, error: BaseException) -> None:
        self.errors.append(error)

    def finished(self) -> None:
        """Nothing is left; it stands again when it is told."""

    def closed(self) -> None:
        """The session is being closed: there is nobody to wake."""

    # --- what it is -----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self.candidacy.driver.machine.state

    @property
    def stands(self) -> bool:
        return self.state.phase not in (Phase.IDLE, Phase.LEAVING) or self.state.again is not None

    @property
    def may_stand(self) -> bool:
        state = self.state
        return state.phase in (Phase.IDLE, Phase.LEAVING) and state.again is None

    @property
    def alive(self) -> bool:
        session_id = self.session.session_id
        return session_id is not None and self.fake.alive(session_id)

    @property
    def over(self) -> bool:
        """Whether its term has ended, and its body has not returned."""
        return self.leadership is not None and self.leadership in self.ends

    @property
    def passes(self) -> bool:
        """Whether a check of its present term passes, at this very moment."""
        if self.leadership is None or self.dead:
            return False
        try:
            self.leadership.check()
        except zkelect.Lost:
            return False
        return True

    # --- what it does ------------------------------------------------------------------------

    def stand(self) -> None:
        self.campaign = self.candidacy.begin()

    def cancel(self) -> None:
        self.candidacy.cancel(self.campaign)

    def prepare(self) -> None:
        assert self.leadership is not None
        try:
            self.candidacy.prepared(self.leadership)
        except zkelect.LeadershipLost:
            return

    def return_body(self) -> None:
        leadership, self.leadership = self.leadership, None
        assert leadership is not None
        self.candidacy.returned(leadership)
