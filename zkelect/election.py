"""The blocking face: stand, wait, lead, leave."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from zkelect.core.events import Reason
from zkelect.core.holddown import HoldDown
from zkelect.core.lease import patience_of
from zkelect.core.state import Phase
from zkelect.errors import Fenced, LeadershipLost, Unreachable
from zkelect.observer import Observation
from zkelect.operating import Operations
from zkelect.session.callbacks import Callbacks
from zkelect.session.functions import check_blocking, check_callbacks, check_stop
from zkelect.session.leadership import Leadership
from zkelect.session.limits import check_timeout
from zkelect.session.lookup import AGAIN, Lookup
from zkelect.session.patience import Patience, Stopped
from zkelect.session.places import Place
from zkelect.session.proposal import DialectName, Proposal
from zkelect.session.roll import Candidate, others_stand, read_roll
from zkelect.session.session import Session
from zkelect.session.standing import Standing, take_office
from zkelect.session.status import Status, read_status
from zkelect.session.supervision import OnSuspended
from zkelect.standby import stand_by

__all__ = ["Election"]

_log: Final = logging.getLogger("zkelect")
_Result = TypeVar("_Result")
_LEAD: Final = "a function of the leadership"


class Election(Operations):
    """One candidate for one job: of all who stand on a path, exactly one leads.

    :param session: of this process, from :func:`zkelect.connect`.
    :param path: absolute, below the session's chroot; made when missing.
    :param name: a label for people, at most 8 KiB; host name and pid when None.
    :param address: where clients reach this leader; shown by :meth:`leader`.
    :param eligible: asked before standing and again at the grant; a candidate that is not
        ready never leads.
    :param prepare: called with the leadership after the grant, before it serves; when
        it raises, the candidate leaves and stands again behind the others.
    :param prepare_timeout: seconds it may take; None: as long as the lease is renewed.
    :param healthy: asked every third of the session timeout while leading, on a thread of
        the library's; no answer until the next time counts as no.
    :param unhealthy_after: so many noes in a row end the leadership; at least 1.
    :param stall_timeout: seconds without :meth:`Leadership.progress` that end it.
    :param on_suspended: ``"until-deadline"``: go on while the lease is valid, also while
        the link is down; ``"pause-at-once"``: checks fail until it is back and proven.
    :param dialect: how candidates are named, so that they share one queue with another
        library's: ``"kazoo"`` with kazoo's Election and Lock, ``"curator-latch"`` with Curator's
        LeaderLatch, ``"curator-lock"`` with its InterProcessMutex and LeaderSelector,
        ``"zkelect"`` with nobody. All candidates of a path should be of one dialect: leaders of
        another library have no lease, and may not see ours.
    :param strict: refuse to stand (ForeignCompany) when others in the queue are of another
        dialect, or sequential znodes of none; otherwise a warning tells.
    :param priority: 0 to 4095. Of those who wait, the one with the largest leads next, if
        there is time to sort it out: it never removes a leader, and never delays a fail-over.
        Not applied while candidates of other libraries are in the queue.
    :param standby: a body that runs while we wait behind somebody, on a thread of its own, and
        is given an :class:`Observation`: a loop over who leads, which ends when we are about to
        lead, or wait no more. ``prepare`` begins when it has returned, and ``prepare_timeout``
        counts from the grant. What it raises ends the campaign.
    :raises InvalidArgument: before anything is created.
    """

    def __init__(
        self,
        session: Session,
        path: str,
        *,
        name: str | None = None,
        address: str = "",
        eligible: Callable[[], bool] | None = None,
        prepare: Callable[[Leadership], None] | None = None,
        prepare_timeout: float | None = None,
        healthy: Callable[[], bool] | None = None,
        unhealthy_after: int = 3,
        stall_timeout: float | None = None,
        on_suspended: OnSuspended = "until-deadline",
        dialect: DialectName = "kazoo",
        strict: bool = False,
        priority: int = 0,
        standby: Callable[[Observation], object] | None = None,
    ) -> None:
        proposal = Proposal(
            path=path,
            name=name,
            address=address,
            eligible=eligible,
            prepare=prepare,
            prepare_timeout=prepare_timeout,
            healthy=healthy,
            unhealthy_after=unhealthy_after,
            stall_timeout=stall_timeout,
            on_suspended=on_suspended,
            dialect=dialect,
            strict=strict,
            priority=priority,
            standby=standby,
        )
        self._candidacy = proposal.candidacy(session)
        if standby is not None:
            stand_by(self._candidacy, standby)
        super().__init__(session, self._candidacy.path, self._candidacy.dialect)
        self.name: Final = self._candidacy.name
        self.path: Final = self._candidacy.path
        self._session = session
        self._dialect = self._candidacy.dialect
        self._eligible = eligible
        self._prepare = prepare
        self._last_lookup: Lookup | None = None
        self._hold_down = HoldDown(session.timeout)
        self._place = Place(session, self.path, self.name)
        self._standing: Standing | None = None

    def __repr__(self) -> str:
        """Show path, name and phase."""
        return f"<Election {self.path} {self.name!r} {self.phase}>"

    # --- stand and lead ----------------------------------------------------------------------

    @contextmanager
    def campaign(self, timeout: float | None = None) -> Iterator[Leadership]:
        """Stand, wait to be elected, and resign when the block is left, also by an error.

        :param timeout: seconds to wait in all; None: for ever.
        :raises NotElected: not within that time; the candidate has left the queue, or
            leaves it as soon as the link allows.
        :raises CampaignInProgress: this object stands already, or another one of this session
            for the same path.
        """
        patience = Patience(self._candidacy, timeout)
        with self._place:
            leadership = self._stand(patience)
            try:
                yield leadership
            finally:
                self._leave(leadership)

    def run(self, lead: Callable[[Leadership], _Result], timeout: float | None = None) -> _Result:
        """Stand, lead once, resign.

        :param lead: the work; it must stop when its leadership is lost.
        :param timeout: seconds to wait for the election.
        :returns: what ``lead`` returned while it led.
        :raises LeadershipLost: it was lost before ``lead`` returned, whatever it returned.
        """
        check_blocking("lead", lead, _LEAD)
        with self.campaign(timeout) as leadership:
            result = lead(leadership)
            if leadership.reason is not None:
                leadership.check()
            return result

    def run_forever(
        self, lead: Callable[[Leadership], object], stop: threading.Event | None = None
    ) -> None:
        """Lead whenever it is our turn, and stand again after every end.

        After an end the candidate stands behind the others; hold-down and back-off keep
        one that flaps from leading again at once while somebody else can.

        :param lead: the work of one term, with its own leadership each time. What it
            raises ends this call; but a loss of that term, LeadershipLost or Fenced, is
            logged and survived.
        :param stop: when set, the candidate resigns and this returns.
        """
        check_blocking("lead", lead, _LEAD)
        check_stop(stop)
        patience = Patience(self._candidacy, None, stop)
        with self._place, suppress(Stopped), patience:
            while True:
                self._lead_once(lead, patience)
                self._hold(patience)

    def resign(self) -> None:
        """Leave: end the leadership, or stop waiting. The znode goes when the body returns."""
        self._candidacy.withdraw()

    # --- without a thread of its own -----------------------------------------------------------

    @contextmanager
    def listen(self, callbacks: Callbacks) -> Iterator[None]:
        """Call back while the block lasts.

        :param callbacks: an object with ``elected``, ``suspended`` and ``deposed``, each
            taking the leadership; called serially, in order, on a thread of the library's
            (never the one that tracks the lease), ``deposed`` when checks already fail.
        """
        check_callbacks(callbacks)
        self._candidacy.listeners.append(callbacks)
        try:
            yield
        finally:
            self._candidacy.listeners.remove(callbacks)

    def start(self) -> None:
        """Stand until :meth:`stop`, again after every end, without blocking anybody."""
        self._place.__enter__()
        self._standing = Standing(
            self._candidacy,
            dialect=self._dialect,
            hold_down=self._hold_down,
            eligible=self._eligible,
            prepare=self._prepare,
        )
        self._standing.begin()

    def stop(self, timeout: float | None = None) -> bool:
        """Leave for good; harmless when not started.

        :param timeout: seconds to wait for ``deposed`` to return and the znode to go;
            a fifth of the session timeout when None. From a callback it does not wait.
        :returns: whether nothing of ours is left.
        """
        check_timeout(timeout)
        standing, self._standing = self._standing, None
        if standing is None:
            return True
        self._place.__exit__()
        patience = patience_of(self._session.timeout) if timeout is None else timeout
        return standing.end(patience)

    # --- look -----------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where this candidate stands, for pages; nothing to guard a write with."""
        return self._candidacy.phase

    def status(self) -> Status:
        """Return where this candidate stands at this moment; asks nobody, and waits for nothing."""
        return read_status(self._candidacy)

    def leader(self, timeout: float = 10.0, *, max_age: float = 0.0) -> Candidate | None:
        """Read who leads; None: nobody.

        One who has resigned is named until its body has returned and its znode is gone.

        :param timeout: seconds to wait for an answer.
        :param max_age: seconds; an answer that was asked for more recently is returned again,
            without a request.
        :raises ConnectFailed: none came.
        """
        return self._lookup.leader(timeout, max_age)

    def observe(self, timeout: float = 10.0) -> Observation:
        """Follow who leads, in a loop.

        ::

            with election.observe() as changes:
                for leader in changes:
                    print("nobody" if leader is None else f"{leader.name} at {leader.address}")

        The first value comes at once, each other one at a change. It may skip some, and
        never lies about their order. A change of leader costs two reads, whoever else
        joins or leaves costs none. Leaders of other libraries are not seen: they write no
        term. While the link is down the last value stays; ``changes.fresh`` and
        ``changes.age`` tell.

        :param timeout: seconds to wait for the first answer.
        :raises InvalidArgument: nobody has ever stood for this election.
        :raises ConnectFailed: no answer came.
        """
        check_timeout(timeout, endless=False)
        return Observation(self._session, self.path, self._dialect, timeout)

    def resolve(
        self,
        call: Callable[[Candidate], _Result],
        *,
        max_age: float = 10.0,
        timeout: float = 10.0,
        again: type[Exception] | tuple[type[Exception], ...] = AGAIN,
    ) -> _Result:
        """Call whoever leads; when that one turns out to be deposed, look once more.

        :param call: what to do with the leader's address or token; called at most twice, the
            second time only if somebody else leads by then.
        :param max_age: seconds that the first answer to "who leads" may be old.
        :param timeout: seconds to wait for each answer of ZooKeeper.
        :param again: what ``call`` raises when its leader is gone or deposed. A timeout or a
            broken connection may mean that the call was done: leave them out when it must not
            be done twice.
        :returns: what ``call`` returned.
        :raises NobodyLeads: nobody does at the moment.
        """
        return self._lookup.resolve(call, max_age=max_age, timeout=timeout, again=again)

    def candidates(self, timeout: float = 10.0) -> tuple[Candidate, ...]:
        """Read who stands, in order; the first leads or is about to."""
        return read_roll(self._session, self.path, self._dialect, timeout)

    # --- within -----------------------------------------------------------------------------------

    @property
    def _lookup(self) -> Lookup:
        """Made when first used: most candidates ask nobody who leads."""
        if self._last_lookup is None:
            self._last_lookup = Lookup(self._session, self.path, self._dialect)
        return self._last_lookup

    def _stand(self, patience: Patience) -> Leadership:
        self._session.ensure_waitable()
        while True:
            self._await_eligible(patience)
            campaign = self._candidacy.begin()
            leadership = self._candidacy.wait_granted(campaign, patience)
            if self._take_office(leadership):
                return leadership
            self._hold(patience)

    def _await_eligible(self, patience: Patience) -> None:
        """An unready candidate does not even stand: it would only be passed over."""
        while self._eligible is not None and not self._eligible():
            patience.pause(self._session.timeout / 4)

    def _take_office(self, leadership: Leadership) -> bool:
        """Prepare; False when it did not work out and we have left again."""
        try:
            if take_office(self._candidacy, leadership, self._eligible, self._prepare):
                return True
        except BaseException:
            self._leave(leadership)
            raise
        self._leave(leadership)
        return False

    def _leave(self, leadership: Leadership) -> None:
        """Resign, and wait a little for the znode to go, so that the next one leads."""
        self._candidacy.returned(leadership)
        self._note_end(leadership)
        self._candidacy.wait_left(patience_of(self._session.timeout))

    def _note_end(self, leadership: Leadership) -> None:
        self._hold_down.end(
            self._session.now(),
            involuntary=leadership.reason is None or not leadership.reason.voluntary,
            unprepared=leadership.reason == Reason.UNPREPARED,
        )

    def _lead_once(self, lead: Callable[[Leadership], object], patience: Patience) -> None:
        leadership = self._stand(patience)
        try:
            lead(leadership)
        except (LeadershipLost, Fenced) as lost:
            if lost.token != leadership.token:
                raise
            _log.info("%s", lost)
        finally:
            self._leave(leadership)

    def _hold(self, patience: Patience) -> None:
        """Let others go first; a back-off is void as soon as nobody stands."""
        others = self._others_stand()
        until = self._session.now() + self._hold_down.wait(random.random(), others=others)
        while (left := until - self._session.now()) > 0:
            patience.pause(min(left, self._session.timeout / 4))
            if others and not self._others_stand():
                return

    def _others_stand(self) -> bool:
        """Whether somebody else is there; when that cannot be told, be careful."""
        own = self._candidacy.node
        try:
            return others_stand(self._session, self.path, self._dialect, own, timeout=1.0)
        except Unreachable:
            return True
