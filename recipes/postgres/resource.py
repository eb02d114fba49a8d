"""PostgreSQL as a resource of the promotion engine: one server and what is done with it."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import psycopg
import sqlalchemy

from zkelect import InvalidArgument, stores
from zkelect.recipes.clock import now
from zkelect.recipes.deadman import DeadMan
from zkelect.recipes.member import Answer, Member, Observed, Role
from zkelect.recipes.postgres import checks, intake, promoting, synchrony
from zkelect.recipes.postgres.asking import NoAnswer, ask, connect, cut_at, locate
from zkelect.recipes.postgres.claim import claim, disclaim
from zkelect.recipes.postgres.following import Following
from zkelect.recipes.postgres.gate import close
from zkelect.recipes.postgres.knocking import knock
from zkelect.recipes.postgres.lifecycle import (
    bar,
    control,
    find_postmaster,
    kill,
    mark_as_standby,
    start,
    start_alone,
    stop,
)
from zkelect.recipes.postgres.naming import check_name
from zkelect.recipes.postgres.place import check_address
from zkelect.recipes.postgres.programs import ProgramFailed
from zkelect.recipes.postgres.state import State, read_state
from zkelect.recipes.resource import NotNow, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from zkelect import Leadership
    from zkelect.recipes.position import Position
    from zkelect.recipes.postgres.place import Place

__all__ = ["Postgres"]

_log: Final = logging.getLogger("zkelect.recipes")
_WATCHER: Final = "zkelect.recipes.postgres.watcher"
_CHECK_TIMEOUT: Final = 60.0
_LOOK_TIMEOUT: Final = 3.0
_CONFIRM_TIMEOUT: Final = 1.0
_COME_BACK_WITHIN: Final = 5.0
_PAUSE: Final = 0.2
_WRITABLE: Final = "select not pg_is_in_recovery()"


class Postgres:
    """One PostgreSQL 15 server, looked after by the agent on its host.

    :param member: who it is; its address is libpq's, ``host=10.0.0.1 port=5432``. Its name is what
        the primary knows it by, so it is of printable ASCII characters, at most 63 of them.
    :param place: where the server is.
    :param domain: of the fence table, in the database of ``place.local``.
    :param fence: makes sure from outside that another member's server is off, such as a power
        switch; None: there is no such means.
    """

    def __init__(
        self,
        member: Member,
        place: Place,
        *,
        domain: str,
        fence: Callable[[Member, float], Answer] | None = None,
    ) -> None:
        check_name(member.name, slots=place.slots)
        if member.address:
            check_address(member.address)
        self._member = member
        self._place = place
        self._fence = fence
        self._following = Following(place, member.name)
        self._dead_man = DeadMan(_WATCHER, {})
        self._behind: int | None = None
        self._was_asked_to_lead = False
        self._domain = domain

    @property
    def member(self) -> Member:
        """Who this is."""
        return self._member

    # --- looking --------------------------------------------------------------------------

    def check(self) -> None:
        """Look at the start whether this server can be looked after.

        :raises Unfit: it cannot.
        """
        claim(self._place.data_directory)
        try:
            checks.check(self._place, now() + _CHECK_TIMEOUT)
        except NotNow as error:
            raise Unfit(f"it cannot be looked at within {_CHECK_TIMEOUT:g} s: {error}") from error

    def observe(self) -> Observed:
        """Look at the server."""
        deadline = now() + _LOOK_TIMEOUT
        if find_postmaster(self._place) is None:
            return self._observe_stopped(deadline)
        try:
            state = read_state(self._place, deadline)
        except NotNow as error:
            return Observed(role=Role.UNKNOWN, healthy=False, detail=str(error))
        try:
            position = locate(self._place.local, deadline)
        except NotNow as error:
            return _observe_unlocated(state, error, in_time=now() < deadline)
        return self._observe_running(state, position)

    def reach(self, member: Member) -> Answer:
        """Ask another member's server whether it takes writes.

        UNKNOWN also when it is there, and does not let us in: nothing says that it takes none.
        """
        conninfo, deadline = self._place.remote(member.address), now() + _LOOK_TIMEOUT
        try:
            (writable,) = ask(conninfo, _WRITABLE, deadline)
        except NoAnswer:
            return knock(conninfo, deadline)
        return Answer.YES if writable else Answer.NO

    def _observe_stopped(self, deadline: float) -> Observed:
        data = control(self._place, deadline)
        return Observed(
            role=Role.STOPPED,
            healthy=data.state in ("shut down", "shut down in recovery"),
            system=data.system,
            detail=f"{data.state}; last checkpoint {data.checkpoint} on timeline {data.timeline}",
        )

    def _observe_running(self, state: State, position: Position) -> Observed:
        if state.behind is not None:
            self._behind = state.behind
        return Observed(
            role=_role_of(state),
            position=position,
            healthy=not state.paused,
            system=state.system,
            behind=self._behind if state.standby else 0,
            detail=_detail_of(state),
        )

    # --- the old primary --------------------------------------------------------------------

    def demote(self, *, planned: bool, deadline: float) -> Position | None:
        """Make it a standby that follows nobody.

        Planned: closed to writers, checkpoint, fast stop, so that the standbys get all of it. Else
        killed at once; its recovery then tells what it has. Killed is also a standby that was asked
        to become the primary: it may do so at any moment, whatever its control file says.
        """
        if self._was_asked_to_lead and self._is_standby(deadline):
            kill(self._place)
        elif planned:
            self._stop_in_order(deadline)
        elif not self._is_standby(deadline):
            kill(self._place)
        self._was_asked_to_lead = False
        mark_as_standby(self._place)
        try:
            return self._come_back(deadline)
        except NotNow as error:
            if planned:
                raise
            _log.warning("%s takes no writes, and is not back yet: %s", self._member.name, error)
            return None  # what it has is told later

    def fence(self, member: Member, deadline: float) -> Answer:
        """Have another member's server switched off, by the means that was given."""
        return Answer.NO if self._fence is None else self._fence(member, deadline)

    def arm(self, deadline: float) -> None:
        """Have the server killed at that instant unless this is called again before."""
        self._dead_man.arm(deadline, str(self._place.data_directory))

    def disarm(self) -> None:
        """Have it left alone."""
        self._dead_man.disarm()

    def close(self) -> None:
        """End what runs beside this process: the server is stopped by nobody from now on."""
        self._dead_man.close()
        disclaim(self._place.data_directory)

    # --- a standby becomes primary ------------------------------------------------------------

    def freeze(self, until: Position | None, deadline: float) -> Position:
        """Follow nobody any more, once ``until`` is received."""
        start(self._place, deadline)
        if until is not None:
            intake.wait_received(self._place, until, deadline)
        return intake.stop_intake(self._place, deadline)

    def catch_up(self, deadline: float) -> Position:
        """Replay all that is received."""
        return intake.apply_received(self._place, deadline)

    def promote(self, deadline: float) -> Position:
        """Become the primary, closed."""
        start(self._place, deadline)
        self._was_asked_to_lead = True
        try:
            return promoting.become_primary(self._place, deadline)
        finally:
            self._was_asked_to_lead = True  # also if it was demoted meanwhile

    def verify(self, deadline: float) -> Position:
        """Return where the new timeline stands.

        :raises NotNow: the server is in recovery.
        """
        if not promoting.is_primary(self._place, deadline):
            raise NotNow("the server is in recovery")
        return locate(self._place.local, deadline)

    def claim(self, leadership: Leadership) -> None:
        """Write the token into the fence table: the first write on the new timeline.

        A new timeline has nobody's mark to go on with, hence ``initialize``; the engine has
        chosen the server, and compared positions before. No answer is waited for beyond the lease
        as it stands: that goes on being renewed, and nobody else could be promoted.
        """
        with ExitStack() as cuts:

            def connecting() -> psycopg.Connection[Any]:
                connection = self._connect()
                cuts.enter_context(cut_at(leadership.deadline, connection))
                return connection

            engine = sqlalchemy.create_engine(
                "postgresql+psycopg://", creator=connecting, poolclass=sqlalchemy.NullPool
            )
            stores.SqlFence(engine, domain=self._domain).claim(leadership, initialize=True)

    def open(self, deadline: float) -> Position:
        """Let writers in, then have the control file tell the new timeline."""
        return promoting.let_writers_in(self._place, deadline)

    # --- the others -----------------------------------------------------------------------------

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        """Follow the primary, rewound if it takes that."""
        self._following.follow(primary.address, deadline)

    def require(self, names: Collection[str], deadline: float) -> None:
        """Confirm a commit only when all of these have it."""
        synchrony.wait_for_all(self._place, names, deadline)

    def in_step(self) -> Collection[str]:
        """Return who has everything that was confirmed until now."""
        return synchrony.confirmed(self._place, now() + _CONFIRM_TIMEOUT)

    # --- within -----------------------------------------------------------------------------------

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            self._place.local,
            connect_timeout=5,
            client_encoding="utf8",
            options="-c default_transaction_read_only=off",
        )

    def _come_back(self, deadline: float) -> Position:
        """Start it as a standby; again for a moment, for an init system may be at it, too.

        :raises NotNow: it does not come; its disk may be full.
        """
        patience = min(deadline, now() + _COME_BACK_WITHIN)
        while True:
            try:
                bar(self._place)
                start_alone(self._place, deadline)
                position = intake.apply_received(self._place, deadline)
                self._refuse_primary(deadline)
                return position
            except (ProgramFailed, OSError) as error:
                if now() >= patience:
                    raise NotNow(str(error)) from error
                time.sleep(_PAUSE)

    def _refuse_primary(self, deadline: float) -> None:
        """Kill a server that was promoted while it came back, as by hand."""
        if promoting.is_primary(self._place, deadline):
            kill(self._place)
            raise NotNow("it was promoted by somebody else meanwhile, and has been killed")

    def _is_standby(self, deadline: float) -> bool:
        """Tell by its file: a server that hangs would not answer before the lease ends."""
        try:
            return control(self._place, deadline).standby
        except (NotNow, ProgramFailed, InvalidArgument):
            return False

    def _stop_in_order(self, deadline: float) -> None:
        if find_postmaster(self._place) is None or self._is_standby(deadline):
            return
        close(self._place, deadline)
        with connect(self._place.local, deadline) as connection:
            connection.execute("CHECKPOINT")
        bar(self._place)
        try:
            stop(self._place, (now() + deadline) / 2)
        except NotNow:  # a standby does not take the last of it; the engine sees who has what
            kill(self._place)


def _observe_unlocated(state: State, error: NotNow, *, in_time: bool) -> Observed:
    """Tell of a server that answers, but not where it stands: that takes a WAL sender, and a right.

    A primary serves its clients all the same: to kill it for that would lose what it alone has. A
    standby cannot be compared. One that gives no answer in time may hang.
    """
    if state.standby or not in_time:
        return Observed(role=Role.UNKNOWN, healthy=False, detail=str(error))
    detail = f"its position cannot be read: {error}"
    return Observed(role=Role.PRIMARY, healthy=True, system=state.system, behind=0, detail=detail)


def _role_of(state: State) -> Role:
    if not state.standby:
        return Role.PRIMARY
    return Role.REPLICA if state.follows else Role.DEMOTED


def _detail_of(state: State) -> str:
    if state.paused:
        return "replay is paused"
    return "receives nothing from whom it follows" if state.follows and not state.streaming else ""
