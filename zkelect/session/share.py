"""A group's share: in which of its elections this process stands, and how many it leads.

While there is room the process stands in every election of the group; with the limit
reached, only where it leads. So nobody resigns in favour of a candidate that would decline,
and the ones that cannot win cost the servers nothing.

Everything here runs under the session's lock.
"""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from posixpath import basename
from typing import Final

from zkelect.core.events import Reason
from zkelect.core.spread import weigh
from zkelect.core.state import Phase
from zkelect.session.leadership import Leadership
from zkelect.session.session import Session
from zkelect.session.standing import Standing
from zkelect.session.ticker import Timer

__all__ = ["Share"]

_FEWEST_JOINS: Final = 16
_MOST_JOINS: Final = 256
"""So many joins are under way at a time: enough to keep the connection busy, and not so
many that a lease's probe waits long behind them."""

_PACE: Final = 0.01
"""Seconds between two looks at how the joins get on."""

_MOST_GIVEN: Final = 8
"""So many elections at a time are given to whom they belong."""

_CALM: Final = 10
"""Session timeouts in which an election is given away once: whoever it was given to and
could not keep it shall not get it again at once."""


class Share:
    """What one process takes of a group's elections; the steward of its candidates.

    :param worker: our name. :param limit: of leaderships at one instant; None for none.
    """

    def __init__(self, session: Session, worker: str, limit: int | None) -> None:
        self._session = session
        self._worker = worker
        self._limit = math.inf if limit is None else limit
        self.standings: dict[str, Standing] = {}
        self.leaving: dict[Standing, None] = {}
        self._seated: set[Standing] = set()
        self._out: OrderedDict[Standing, None] = OrderedDict()
        self._joining: set[Standing] = set()
        self._surplus: Iterator[Standing] = iter(())
        self._giving: set[str] = set()
        self._given: OrderedDict[str, float] = OrderedDict()
        self._timer: Timer | None = None

    @property
    def room(self) -> float:
        """How many more may be led now."""
        return self._limit - len(self._seated)

    def serving(self) -> Iterator[Leadership]:
        """The leaderships that last, of those that have prepared."""
        for standing in self._seated:
            if standing.phase is Phase.LEADING and standing.leadership is not None:
                yield standing.leadership

    def take(self, standings: Iterable[Standing]) -> None:
        """Stand in these, too, as soon as there is room: first where we weigh most."""
        new = {standing.path: standing for standing in standings}
        self.standings.update(new)
        self._out.update(dict.fromkeys(self._by_weight(new.values())))
        self._turn_in(0.0)

    def drop(self, path: str) -> None:
        """Leave an election for good."""
        standing = self.standings.pop(path)
        self._out.pop(standing, None)
        self._joining.discard(standing)
        standing.leave()
        if not standing.wait_left(0.0):
            self.leaving[standing] = None

    def outranked(self, leadership: Leadership) -> None:
        """Give an election to whom it belongs, a few at a time, and not again and again."""
        now, path = self._session.now(), leadership.path
        self._forget_given(now - _CALM * self._session.timeout)
        if path in self.standings and path not in self._given and len(self._giving) < _MOST_GIVEN:
            self._given[path] = now
            self._giving.add(path)
            leadership.end(Reason.RESIGNED)

    # --- steward -----------------------------------------------------------------------------

    def admit(self, standing: Standing) -> bool:
        """Let it stand if there is room, and not too many join already; or else soon."""
        if self.room > 0 and (standing in self._joining or self._may_join() > 0):
            self._joining.add(standing)
            return True
        self._keep_out(standing)
        return False

    def seat(self, standing: Standing) -> bool:
        """Count a leadership at its grant: the one place where the limit is kept."""
        if self.room <= 0:
            return False
        self._seated.add(standing)
        if self.room <= 0:
            self._surplus = self._others()
            self._turn_in(0.0)
        return True

    def vacate(self, standing: Standing) -> None:
        """There is room again: after a jittered moment, for others may have just as much."""
        self._seated.discard(standing)
        if self._out and self.room > 0 and self._timer is None:
            self._turn_in(random.random() * self._session.timeout / 10)

    def left(self, standing: Standing) -> bool:
        """Its znode is gone: whom it was given to leads now. With the limit reached it waits."""
        self._giving.discard(standing.path)
        self.leaving.pop(standing, None)
        if self.room <= 0 and self.standings.get(standing.path) is standing:
            self._keep_out(standing)
            return False
        return True

    # --- within ------------------------------------------------------------------------------

    def _by_weight(self, standings: Iterable[Standing]) -> list[Standing]:
        """Put those first in which we should lead: so workers that begin together meet little."""

        def weight(standing: Standing) -> int:
            return weigh(self._worker, basename(standing.path))

        return sorted(standings, key=weight, reverse=True)

    def _may_join(self) -> float:
        """How many joins may begin now: so many as may win, lest we decline, and a few more."""
        most = min(max(self.room, _FEWEST_JOINS), _MOST_JOINS)
        if len(self._joining) >= most:
            self._joining = {each for each in self._joining if not each.decided}
        return most - len(self._joining)

    def _keep_out(self, standing: Standing) -> None:
        self._joining.discard(standing)
        self._out[standing] = None
        if self._timer is None:
            self._turn_in(_PACE)

    def _forget_given(self, before: float) -> None:
        while self._given and next(iter(self._given.values())) < before:
            self._given.popitem(last=False)

    def _turn_in(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._session.call_at(self._session.now() + delay, self._turn)

    def _turn(self) -> None:
        self._timer = None
        if self._session.ended:
            return
        if self.room > 0:
            self._let_in()
        else:
            self._let_out()

    def _let_in(self) -> None:
        """Join, as many at a time as the connection bears."""
        for _ in range(min(int(self._may_join()), len(self._out))):
            standing, _none = self._out.popitem(last=False)
            self._joining.add(standing)
            standing.begin()
        if self._out:
            self._turn_in(_PACE)

    def _let_out(self) -> None:
        """Leave the queues in which we could only decline."""
        leaving = tuple(islice(self._surplus, _MOST_JOINS))
        for standing in leaving:
            if standing not in self._seated:
                standing.step_aside()
        if leaving:
            self._turn_in(_PACE)

    def _others(self) -> Iterator[Standing]:
        """Those that stand without leading, as they are when the first one is asked for."""
        standing = set(self.standings.values()) - self._seated - self._out.keys()
        yield from self._by_weight(standing)
