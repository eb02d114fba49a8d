"""The asyncio face: stand, wait, lead, leave, without ever blocking the event loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar

from zkelect.aio_leadership import AsyncLeadership
from zkelect.aio_news import Deadline, News
from zkelect.aio_observer import AsyncObservation
from zkelect.aio_session import AsyncSession
from zkelect.core.events import Reason
from zkelect.core.holddown import HoldDown
from zkelect.core.lease import patience_of
from zkelect.core.state import Phase
from zkelect.errors import Fenced, LeadershipLost, NotElected, Unreachable
from zkelect.session.limits import check_timeout
from zkelect.session.lookup import AGAIN, Lookup
from zkelect.session.proposal import DialectName, Proposal
from zkelect.session.roll import Candidate, others_stand, read_roll
from zkelect.session.supervision import OnSuspended

__all__ = ["AsyncElection"]

_log: Final = logging.getLogger("zkelect")
_Result = TypeVar("_Result")
Maybe: TypeAlias = Awaitable[_Result] | _Result
"""What a function gives that may be a coroutine function or an ordinary one."""


class AsyncElection:
    """One candidate for one job, for a program on asyncio; else as :class:`zkelect.Election`.

    Use it in one event loop. Cancelling is safe at every await: nothing of the candidate is
    left behind, and no znode goes while the body of its leader still runs.

    :param session: from :func:`zkelect.aconnect`.
    :param eligible, prepare, healthy: as there, each an ordinary or a coroutine function.
        ``prepare`` is cancelled when its leadership is lost.
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
    ) -> None:
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
        )
        self._candidacy = proposal.candidacy(self._session)
        self._candidacy.attendant = self._news
        self.name: Final = self._candidacy.name
        self.path: Final = self._candidacy.path
        self._eligible = eligible
        self._prepare = prepare
        self._lookup = Lookup(self._session, self.path, self._candidacy.dialect)
        self._hold_down = HoldDown(self._session.timeout)

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
        :raises CampaignInProgress: this object stands already.
        """
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
        async with self.campaign(timeout) as leadership:
            return await _work(leadership, lead)

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
            await _end(forever)
        if not (forever.cancelled() and stop is not None and stop.is_set()):
            forever.result()  # a body that was cancelled by itself ends this call, too

    def resign(self) -> None:
        """Leave: end the leadership, or stop waiting. The znode goes when the body returns."""
        self._candidacy.withdraw()

    # --- look ----------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where this candidate stands, for pages; nothing to guard a write with."""
        return self._candidacy.phase

    async def leader(self, timeout: float = 10.0, *, max_age: float = 0.0) -> Candidate | None:
        """Read who leads; see :meth:`zkelect.Election.leader`."""
        return await asyncio.to_thread(self._lookup.leader, timeout, max_age)

    async def candidates(self, timeout: float = 10.0) -> tuple[Candidate, ...]:
        """Read who stands, in order; the first leads or is about to."""
        dialect = self._candidacy.dialect
        return await asyncio.to_thread(read_roll, self._session, self.path, dialect, timeout)

    def observe(self, timeout: float = 10.0) -> AsyncObservation:
        """Follow who leads: ``async with``, then ``async for``; as :meth:`Election.observe`."""
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
        first = await asyncio.to_thread(self._lookup.present, timeout, max_age)
        try:
            return await call(first)
        except again:
            second = await asyncio.to_thread(self._lookup.present, timeout, 0.0)
            if second.is_same_term(first):
                raise
        return await call(second)

    # --- within ----------------------------------------------------------------------------------

    async def _lead_on(self, lead: Callable[[AsyncLeadership], Awaitable[object]]) -> None:
        while True:
            leadership = await self._stand(None)
            try:
                await _work(leadership, lead)
            except (LeadershipLost, Fenced) as lost:
                if lost.token != leadership.token:
                    raise
                _log.info("%s", lost)
            finally:
                await self._leave(leadership)
            await self._hold(Deadline.after(None))

    async def _stand(self, timeout: float | None) -> AsyncLeadership:
        """Stand until it works out; what eligible and prepare take is theirs."""
        check_timeout(timeout)
        self._news.begin()
        deadline = Deadline.after(timeout)
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
        return NotElected(self.path, deadline.timeout, self._candidacy.ahead)

    async def _is_eligible(self) -> bool:
        return self._eligible is None or bool(await _answer(self._eligible()))

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
        if not await self._is_eligible():
            self._candidacy.end(leadership.leadership, Reason.INELIGIBLE)
            return False
        prepare = self._prepare
        try:
            if prepare is not None:
                await _work(leadership, lambda leadership: _answer(prepare(leadership)))
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
            involuntary=leadership.reason != Reason.RESIGNED,
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


async def _work(
    leadership: AsyncLeadership, lead: Callable[[AsyncLeadership], Awaitable[_Result]]
) -> _Result:
    """Await the body, cancel it when the leadership is lost, and wait for its end."""
    body = asyncio.ensure_future(lead(leadership))
    lost = asyncio.ensure_future(leadership.lost())
    try:
        await asyncio.wait({body, lost}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        lost.cancel()
        await _end(body)
    if body.cancelled():
        leadership.leadership.check()  # raises, if the loss is why
    result = body.result()
    if leadership.reason is not None:
        leadership.check()
    return result


async def _end(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end; who cancels us meanwhile waits for it, too."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _answer(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
