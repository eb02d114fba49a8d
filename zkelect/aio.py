"""The asyncio face: stand, wait, lead, leave, without ever blocking the event loop."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeAlias, TypeVar

from zkelect.aio_body import answer, awaited, end, work
from zkelect.aio_leadership import AsyncLeadership
from zkelect.aio_news import Deadline, News
from zkelect.aio_observer import AsyncObservation
from zkelect.aio_operating import AsyncOperations
from zkelect.aio_session import AsyncSession
from zkelect.aio_standby import AsyncStandby, Following
from zkelect.core.events import Reason
from zkelect.core.holddown import HoldDown
from zkelect.core.lease import patience_of
from zkelect.core.state import Phase
from zkelect.errors import Fenced, InvalidArgument, LeadershipLost, NotElected, Unreachable
from zkelect.session.functions import check_async_stop, check_coroutine
from zkelect.session.limits import check_timeout
from zkelect.session.lookup import AGAIN, CALL, Lookup, check_again
from zkelect.session.places import Place
from zkelect.session.proposal import DialectName, Proposal
from zkelect.session.roll import Candidate, others_stand, read_roll
from zkelect.session.status import Status, read_status
from zkelect.session.supervision import OnSuspended

__all__ = ["AsyncElection"]

_log: Final = logging.getLogger("zkelect")
_Result = TypeVar("_Result")
_LEAD: Final = "a coroutine function of the leadership"
_SESSION_FORM: Final = "a zkelect.AsyncSession: await aconnect(…), or AsyncSession(session)"
Maybe: TypeAlias = Awaitable[_Result] | _Result
"""What a function gives that may be a coroutine function or an ordinary one."""


class AsyncElection(AsyncOperations):
    """One candidate for one job, for a program on asyncio; else as :class:`zkelect.Election`.

    Use it in one event loop. Cancelling is safe at every await: nothing of the candidate is
    left behind, and no znode goes while the body of its leader still runs.

    :param session: from :func:`zkelect.aconnect`.
    :param eligible, prepare, healthy: as there, each an ordinary or a coroutine function.
        ``prepare`` is cancelled when its leadership is lost.
    :param standby: a coroutine function, which is given an :class:`AsyncObservation`. It is
        cancelled when we are about to lead, or wait no more, and its end is awaited.
    """

    def __init__(
        self,
        session: AsyncSession,
        path: str,
        *,
        name: str | None = None,
        address: str = "",
        eligible: Callable[[], Maybe[bool]] | None = None,
        prepare: Callable[[AsyncLeadership], Maybe[None]] | None = None,
        prepare_timeout: float | None = None,
        healthy: Callable[[], Maybe[bool]] | None = None,
        unhealthy_after: int = 3,
        stall_timeout: float | None = None,
        on_suspended: OnSuspended = "until-deadline",
        dialect: DialectName = "kazoo",
        strict: bool = False,
        priority: int = 0,
        standby: Following | None = None,
    ) -> None:
        if not isinstance(session, AsyncSession):
            raise InvalidArgument("session", session, _SESSION_FORM)
        self._session = session.session
        self._news = News(self._session)
        proposal = Proposal(
            path=path,
            name=name,
            address=address,
            eligible=eligible,
            prepare=prepare,
            prepare_timeout=prepare_timeout,
            healthy=None if healthy is None else self._news.blocking(healthy),
            unhealthy_after=unhealthy_after,
            stall_timeout=stall_timeout,
            on_suspended=on_suspended,
            dialect=dialect,
            strict=strict,
            priority=priority,
            standby=standby,
            awaits=True,
        )
        self._candidacy = proposal.candidacy(self._session)
        super().__init__(self._session, self._candidacy.path, self._candidacy.dialect)
        self._candidacy.attendant = self._news
        self._standby = (
            None if standby is None else AsyncStandby(self._candidacy, self._news, standby)
        )
        self.name: Final = self._candidacy.name
        self.path: Final = self._candidacy.path
        self._eligible = eligible
        self._prepare = prepare
        self._lookup = Lookup(self._session, self.path, self._candidacy.dialect)
        self._hold_down = HoldDown(self._session.timeout)
        self._place = Place(self._session, self.path, self.name)

    def __repr__(self) -> str:
        """Show path, name and phase."""
        return f"<AsyncElection {self.path} {self.name!r} {self.phase}>"

    # --- stand and lead ----------------------------------------------------------------------

    @asynccontextmanager
    async def campaign(self, timeout: float | None = None) -> AsyncIterator[AsyncLeadership]:
        """Stand, wait to be elected, and resign when the block is left, however it is left.

        The block itself is not cancelled when the leadership is lost: check it, or await
        :meth:`AsyncLeadership.lost`; :meth:`run` does that for you.

        :param timeout: seconds to wait in all; None: for ever.
        :raises NotElected: not within that time.
        :raises CampaignInProgress: this object stands already, or another one of this session
            for the same path.
        """
        check_timeout(timeout)
        with self._standing():
            leadership = await self._stand(timeout)
            try:
                yield leadership
            finally:
                await self._leave(leadership)

    async def run(
        self,
        lead: Callable[[AsyncLeadership], Awaitable[_Result]],
        timeout: float | None = None,
    ) -> _Result:
        """Stand, lead once, resign.

        :param lead: the work. It is cancelled when the leadership is lost, and its end is
            awaited before the znode goes, however long it takes.
        :param timeout: seconds to wait for the election.
        :returns: what ``lead`` returned while it led.
        :raises LeadershipLost: it was lost before ``lead`` returned.
        """
        check_coroutine("lead", lead, _LEAD)
        async with self.campaign(timeout) as leadership:
            return await work(leadership, lead)

    async def run_forever(
        self,
        lead: Callable[[AsyncLeadership], Awaitable[object]],
        stop: asyncio.Event | None = None,
    ) -> None:
        """Lead whenever it is our turn, and stand again after every end.

        :param lead: the work of one term. What it raises ends this call; but a loss of that
            term, LeadershipLost or Fenced, is logged and survived.
        :param stop: when set, ``lead`` is cancelled, the candidate resigns and this returns;
            to cancel the task that awaits this does the same.
        """
        check_coroutine("lead", lead, _LEAD)
        check_async_stop(stop)
        with self._standing():
            await self._lead_until(lead, stop)

    def resign(self) -> None:
        """Leave: end the leadership, or stop waiting. The znode goes when the body returns."""
        self._candidacy.withdraw()

    # --- look ----------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where this candidate stands, for pages; nothing to guard a write with."""
        return self._candidacy.phase

    def status(self) -> Status:
        """Return where this candidate stands at this moment; asks nobody, and waits for nothing."""
        return read_status(self._candidacy)

    async def leader(self, timeout: float = 10.0, *, max_age: float = 0.0) -> Candidate | None:
        """Read who leads; see :meth:`zkelect.Election.leader`."""
        return await asyncio.to_thread(self._lookup.leader, timeout, max_age)

    async def candidates(self, timeout: float = 10.0) -> tuple[Candidate, ...]:
        """Read who stands, in order; the first leads or is about to."""
        dialect = self._candidacy.dialect
        return await asyncio.to_thread(read_roll, self._session, self.path, dialect, timeout)

    def observe(self, timeout: float = 10.0) -> AsyncObservation:
        """Follow who leads: ``async with``, then ``async for``; as :meth:`Election.observe`."""
        check_timeout(timeout, endless=False)
        return AsyncObservation(self._session, self.path, self._candidacy.dialect, timeout)

    async def resolve(
        self,
        call: Callable[[Candidate], Awaitable[_Result]],
        *,
        max_age: float = 10.0,
        timeout: float = 10.0,
        again: type[Exception] | tuple[type[Exception], ...] = AGAIN,
    ) -> _Result:
        """Call whoever leads, once more if that one is deposed; as :meth:`Election.resolve`."""
        check_coroutine("call", call, f"a coroutine function: {CALL}")
        check_again(again)
        first = await asyncio.to_thread(self._lookup.present, timeout, max_age)
        try:
            return await awaited("call", call, call(first))
        except again:
            second = await asyncio.to_thread(self._lookup.present, timeout, 0.0)
            if second.is_same_term(first):
                raise
        return await awaited("call", call, call(second))

    # --- within ----------------------------------------------------------------------------------

    @contextmanager
    def _standing(self) -> Iterator[None]:
        """Take our place, which a campaign that was dropped with its event loop has never left."""
        if self._news.begin():
            self._place.__exit__()
        if self._standby is not None:
            self._standby.begin()
        with self._place:
            yield

    async def _lead_until(
        self,
        lead: Callable[[AsyncLeadership], Awaitable[object]],
        stop: asyncio.Event | None,
    ) -> None:
        forever = asyncio.ensure_future(self._lead_on(lead))
        stopped = None if stop is None else asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait(
                {forever} if stopped is None else {forever, stopped},
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            if stopped is not None:
                stopped.cancel()
            await end(forever)
        if not (forever.cancelled() and stop is not None and stop.is_set()):
            forever.result()  # a body that was cancelled by itself ends this call, too

    async def _lead_on(self, lead: Callable[[AsyncLeadership], Awaitable[object]]) -> None:
        while True:
            leadership = await self._stand(None)
            try:
                await work(leadership, lead)
            except (LeadershipLost, Fenced) as lost:
                if lost.token != leadership.token:
                    raise
                _log.info("%s", lost)
            finally:
                await self._leave(leadership)
            await self._hold(Deadline.after(None))

    async def _stand(self, timeout: float | None) -> AsyncLeadership:
        """Stand until it works out; what eligible and prepare take is theirs."""
        try:
            return await self._stand_on(Deadline.after(timeout))
        except (Exception, asyncio.CancelledError):
            if self._standby is not None:
                await self._standby.end()
            raise

    async def _stand_on(self, deadline: Deadline) -> AsyncLeadership:
        while True:
            while not await self._is_eligible():
                await self._pause(self._session.timeout / 4, deadline)
            leadership = await self._await_grant(deadline)
            if await self._take_office(leadership):
                return leadership
            await self._hold(deadline)

    async def _await_grant(self, deadline: Deadline) -> AsyncLeadership:
        campaign = self._candidacy.begin()
        try:
            if not await deadline.met(
                self._news.wait_for(lambda: self._candidacy.decided(campaign))
            ):
                raise self._late(deadline)
            with self._session.lock:
                return self._news.lead(self._candidacy.outcome(campaign))
        except BaseException:
            self._candidacy.cancel(campaign)
            raise

    async def _pause(self, seconds: float, deadline: Deadline) -> None:
        if not await deadline.met(asyncio.sleep(seconds)):
            raise self._late(deadline)

    def _late(self, deadline: Deadline) -> NotElected:
        candidacy = self._candidacy
        return NotElected(self.path, deadline.timeout, candidacy.ahead, candidacy.pause)

    async def _is_eligible(self) -> bool:
        return self._eligible is None or bool(await answer(self._eligible()))

    async def _take_office(self, leadership: AsyncLeadership) -> bool:
        """Prepare; False when it did not work out and we have left again."""
        done = False
        try:
            done = await self._become_ready(leadership)
        finally:
            if not done:
                await self._leave(leadership)
        return done

    async def _become_ready(self, leadership: AsyncLeadership) -> bool:
        if self._standby is not None and not await self._standby.settle(leadership):
            return False
        if not await self._is_eligible():
            self._candidacy.end(leadership.leadership, Reason.INELIGIBLE)
            return False
        prepare = self._prepare
        try:
            if prepare is not None:
                await work(leadership, lambda leadership: answer(prepare(leadership)))
            self._candidacy.prepared(leadership.leadership)
        except LeadershipLost as lost:
            _log.warning("lost while preparing: %s", lost)
            return False
        except Exception:  # noqa: BLE001  # the user's: heard here, survived by leaving
            _log.exception("%s: prepare failed; %s leaves", self.path, self.name)
            self._candidacy.end(leadership.leadership, Reason.UNPREPARED)
            return False
        return True

    async def _leave(self, leadership: AsyncLeadership) -> None:
        """Resign, and wait a little for the znode to go, so that the next one leads."""
        self._candidacy.returned(leadership.leadership)
        self._hold_down.end(
            self._session.now(),
            involuntary=leadership.reason is None or not leadership.reason.voluntary,
            unprepared=leadership.reason == Reason.UNPREPARED,
        )
        await Deadline.after(patience_of(self._session.timeout)).met(
            self._news.wait_for(self._candidacy.gone)
        )

    async def _hold(self, deadline: Deadline) -> None:
        """Let others go first; a back-off is void as soon as nobody stands."""
        others = await self._others_stand()
        until = self._session.now() + self._hold_down.wait(random.random(), others=others)
        while (left := until - self._session.now()) > 0:
            await self._pause(min(left, self._session.timeout / 4), deadline)
            if others and not await self._others_stand():
                return

    async def _others_stand(self) -> bool:
        """Whether somebody else is there; when that cannot be told, be careful."""
        own, dialect = self._candidacy.node, self._candidacy.dialect
        try:
            return await asyncio.to_thread(
                others_stand, self._session, self.path, dialect, own, timeout=1.0
            )
        except Unreachable:
            return True
