"""A candidate of one session: it stands, leads while the lease is valid, resigns, stands again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

import attrs

from search.log import Kind, Stand
from zkelect.core.events import Reason
from zkelect.session.gateway import Check

if TYPE_CHECKING:
    from search.client import Client

__all__ = ["Candidate", "Term"]

_CHECKS: Final = (Check(path="/election/record", version=0), Check(path="/election/candidate"))


@attrs.define(eq=False)
class Term:
    """One leadership, in true time.

    :ivar ended: when the leader knew that it was over, infinity if it never did.
    """

    client: Client
    granted: float
    ended: float = math.inf

    def until(self) -> float:
        """Return the last instant at which this leader may have held itself to be one."""
        until = self.granted
        course = self.client.lease.course
        changes = [*(since for since, _ in course[1:]), math.inf]
        for (since, deadline), change in zip(course, changes, strict=True):
            believed = min(deadline, change, self.ended)
            if believed > since and believed > self.granted:
                until = max(until, believed)
        return until


class Candidate:
    """What the session's driver is to a probe, and what the election is to the client."""

    def __init__(self, client: Client, office: list[Term], chance: Random) -> None:
        self._client = client
        self._office = office
        self._chance = chance
        self._campaign = 0
        self._standing = True
        self._roll: Sequence[Stand] = ()
        self._asking = False
        self.term: Term | None = None

    # --- what the prober and the watchdog ask ------------------------------------------------

    def checks(self) -> list[Check]:
        """Return what a probe has to check."""
        return list(_CHECKS)

    def contradict(self, path: str, fault: object) -> None:
        """Never comes: nobody deletes znodes from outside here."""

    def end_term(self, reason: Reason) -> None:
        """Hear that the lease has lapsed: the leadership is over for good; stand again behind."""
        if self.term is not None:
            self._end()
            self._campaign += 1
            self._act()

    # --- what the client tells ---------------------------------------------------------------

    def told(self, roll: Sequence[Stand]) -> None:
        """Hear of the roll."""
        self._roll = roll
        self._act()
        self.prove()

    def suspended(self) -> None:
        """The connection is gone: what was asked may have been done, or not."""
        self._asking = False

    def prove(self) -> None:
        """Lead, if this is the first and the lease is valid."""
        client = self._client
        if self.term is None and self._first and client.boottime() < client.lease.deadline:
            self.term = Term(client, client.timeline.now)
            self._office.append(self.term)
            client.prober.hurry()
        self._sort()

    def resign(self, stand_again: float) -> None:
        """Leave on purpose, and stand again after so many seconds."""
        if self.term is not None:
            self._end()
        self._standing = False
        self._act()
        again = self._client.timeline.now + stand_again
        self._client.timeline.at(again, self._client, self._stand)

    # --- within --------------------------------------------------------------------------------

    @property
    def _stand_now(self) -> Stand:
        return Stand(self._client.number, self._campaign)

    @property
    def _first(self) -> bool:
        return self._standing and bool(self._roll) and self._roll[0] == self._stand_now

    def _end(self) -> None:
        assert self.term is not None
        self.term.ended = self._client.timeline.now
        self.term = None

    def _stand(self) -> None:
        if not self._standing:
            self._campaign += 1
            self._standing = True
            self._act()

    def _act(self) -> None:
        """Ask for the next change that brings the roll to what is wanted."""
        self._sort()
        if self._asking or not self._client.connected:
            return
        wanted = self._stand_now if self._standing else None
        ours = [stand for stand in self._roll if stand.session == self._client.number]
        stale = [stand for stand in ours if stand != wanted]
        if stale:
            self._ask(Kind.LEAVE, stale[0])
        elif wanted is not None and not ours:
            self._ask(Kind.JOIN, wanted)

    def _ask(self, kind: Kind, stand: Stand) -> None:
        self._asking = True
        self._client.gateway.change(kind, stand, self._done)

    def _done(self, answer: Any) -> None:
        if self._client.connected:
            self._asking = False
            self._act()

    def _sort(self) -> None:
        """Tell the roster, which tells the prober and the watchdog."""
        roster, driver = self._client.roster, self._client.driver
        waits = self._standing and self._stand_now in self._roll
        for members, belongs in (
            (roster.warm, waits),
            (roster.first, self._first),
            (roster.leading, self.term is not None),
        ):
            if belongs != (driver in members):
                self._enlist(members, belongs)

    def _enlist(self, members: dict[Any, None], belongs: bool) -> None:
        if belongs:
            members[self._client.driver] = None
        else:
            members.pop(self._client.driver)
        self._client.kick()
