"""Redis as a resource of the promotion engine: one server and what is done with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.recipes.clock import now
from zkelect.recipes.deadman import DeadMan
from zkelect.recipes.member import Answer, Member, Observed, Role
from zkelect.recipes.redis import checks, claiming, following, gate, process, promoting
from zkelect.recipes.redis.asking import NoAnswer, connect
from zkelect.recipes.redis.demoting import detach, hand_over
from zkelect.recipes.redis.history import Record, locate
from zkelect.recipes.redis.knocking import answer_of
from zkelect.recipes.redis.place import URL, split_address
from zkelect.recipes.redis.state import State, read_state
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect import Leadership
    from zkelect.recipes.position import Position
    from zkelect.recipes.redis.place import Place

__all__ = ["RedisServer"]

_CHECK_TIMEOUT: Final = 60.0
_LOOK_TIMEOUT: Final = 2.0
_WATCHER: Final = "zkelect.recipes.redis.watcher"


class RedisServer:
    """One Redis 7 server, looked after on its host.

    Promises: it starts as a replica, whoever starts it (:meth:`check` insists on it); it takes
    writes only between ``open`` and ``demote``, and not beyond the deadline of the last ``arm``.
    Its position is told only while its data are whole, and offsets are compared only within one
    replication id. It never needs a rebuild: what cannot be continued Redis replaces by a full
    copy, and what was written apart is gone with it.

    Does not promise: that what it confirmed is on another server. Redis replicates
    asynchronously; ``min_replicas`` makes what can be lost less.

    :param member: who this is; its address is ``host:port``.
    :param domain: of the fence in which each primary claims its token; one for all members.
    :param fence: makes sure that another member's server is off, such as a power
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
        split_address(member.address)
        self._member = member
        self._place = place
        self._domain = domain
        self._fence = fence
        self._record = Record(place.record)
        self._dead_man = DeadMan(_WATCHER, {URL: place.url})
        self._process = ""
        self._demoted = ""
        self._compared = ""

    @property
    def member(self) -> Member:
        """Who this is."""
        return self._member

    @property
    def place(self) -> Place:
        """Where it is."""
        return self._place

    # --- looking --------------------------------------------------------------------------

    def check(self) -> None:
        """Look at the start whether this server can be looked after.

        :raises Unfit: it cannot.
        """
        checks.check(self._place, now() + _CHECK_TIMEOUT)
        self._dead_man.begin()

    def observe(self) -> Observed:
        """Look at the server."""
        try:
            state = self._look(now() + _LOOK_TIMEOUT)
        except NoAnswer as error:
            gone = self._process and not process.lives(self._process)
            role = Role.STOPPED if gone else Role.UNKNOWN
            return Observed(role=role, healthy=False, detail=str(error))
        why = promoting.objection(state) or promoting.restarted(state, self._reigned, self._demoted)
        return Observed(
            role=_role_of(state),
            position=self._position(state),
            healthy=not why,
            detail=why,
        )

    def reach(self, member: Member) -> Answer:
        """Ask another member's server whether it takes writes."""
        try:
            state = read_state(self._place.remote(member.address), now() + _LOOK_TIMEOUT)
        except NoAnswer as error:
            return answer_of(error)
        return Answer.YES if state.master else Answer.NO

    # --- the old primary --------------------------------------------------------------------

    def demote(self, *, planned: bool, deadline: float) -> Position | None:
        """Have it follow nowhere, with all that it has.

        Planned: writers are held until the followers have everything. Else at once, and a server
        that does not obey is killed.

        :raises NotNow: planned, and it does not answer or obey: killed it would have less than
            its followers, and there is time to ask again.
        :raises Incomplete: planned, and it was started anew since it was the primary: what it has
            left is not what the others must have.
        """
        try:
            state = self._look(deadline)
            if planned:
                promoting.check_run(state, self._reigned)
            offset = self._give_up(deadline, planned=planned) if state.master else None
        except NoAnswer:
            if planned:
                raise
            self._kill()
            return self._start(deadline)
        self._demoted = state.run
        position = self._position(self._look(deadline))
        if position is None or offset is None:
            return position
        return attrs.evolve(position, offset=offset)

    def fence(self, member: Member, deadline: float) -> Answer:
        """Have another member's server switched off, by the means that was given."""
        return Answer.NO if self._fence is None else self._fence(member, deadline)

    def arm(self, deadline: float) -> None:
        """Have the server stopped at that instant unless this is called again before."""
        if self._process:
            self._dead_man.arm(deadline, self._process)

    def disarm(self) -> None:
        """Have it left alone."""
        self._dead_man.disarm()

    def close(self) -> None:
        """End what runs beside this process: the server is stopped by nobody from now on."""
        self._dead_man.close()

    # --- a replica becomes primary ------------------------------------------------------------

    def freeze(self, until: Position | None, deadline: float) -> Position:
        """Follow nobody any more, once ``until`` is received."""
        process.ensure_running(self._place, deadline)
        if until is not None:
            following.wait_received(self._place, until, self._known, deadline)
        return following.stop_intake(self._place, self._known, deadline)

    def catch_up(self, deadline: float) -> Position:
        """Nothing to do: Redis applies what it receives before it counts it.

        But whom the engine asks for this has won a comparison, by what this run of it has.

        :raises Incomplete: it was started anew since.
        """
        state = self._look(deadline)
        promoting.check_run(state, self._reigned, self._demoted)
        self._compared = state.run
        return locate(state, self._known)

    def promote(self, deadline: float) -> Position:
        """Become the primary, locked.

        :raises Incomplete: its data are not whole; or it was started anew since it was the primary,
            and nobody has compared what it has left.
        """
        self._look(deadline)
        return promoting.become_primary(self._place, self._record, deadline, self._compared)

    def verify(self, deadline: float) -> Position:
        """Return where the new branch stands.

        :raises NotNow: it is no master, or was started anew meanwhile.
        """
        state = self._look(deadline)
        if not state.master or state.run != self._record.kept.reigned:
            raise NotNow("the server is not the primary that was promoted: it was started anew")
        return locate(state, self._known)

    def claim(self, leadership: Leadership) -> None:
        """Write the token into the fence: the first write on the new branch."""
        claiming.claim(self._place.url, self._domain, leadership)

    def open(self, deadline: float) -> Position:
        """Let writers in.

        :raises NotNow: it is not the primary that was promoted.
        """
        self.verify(deadline)
        with connect(self._place.url, deadline) as client:
            gate.open_for_writes(client, self._place)
        return self.verify(deadline)

    # --- the others -----------------------------------------------------------------------------

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        """Follow the primary, by a full copy if it takes that."""
        process.ensure_running(self._place, deadline)
        self._record.learn(position)
        following.join(self._place, split_address(primary.address), deadline)
        self._record.forget_reign()

    # --- within -----------------------------------------------------------------------------------

    @property
    def _known(self) -> Position | None:
        return self._record.kept.known

    @property
    def _reigned(self) -> str:
        return self._record.kept.reigned

    def _position(self, state: State) -> Position | None:
        """Return what it has, None while its data are not what their offset says."""
        return locate(state, self._known) if state.whole and not state.loading else None

    def _look(self, deadline: float) -> State:
        """Ask our server, and remember which process it is."""
        state = read_state(self._place.url, deadline)
        try:
            self._process = process.identify(state.pid)
        except ProcessLookupError:
            raise NotNow("the server has just ended") from None
        return state

    def _give_up(self, deadline: float, *, planned: bool) -> int | None:
        """Make a master a replica of nobody; return where its writes end, None: at its end."""
        if planned:
            return hand_over(self._place, deadline)
        with connect(self._place.url, deadline) as client:
            detach(client)
        return None

    def _kill(self) -> None:
        """Kill the process that we last saw; harmless when it has ended."""
        handle = process.find(self._process) if self._process else None
        if handle is None:
            return
        try:
            process.kill(handle)
        finally:
            os.close(handle)

    def _start(self, deadline: float) -> Position | None:
        """Start it, as what it always starts as; None: it takes no writes, and does not tell."""
        try:
            state = process.ensure_running(self._place, deadline)
        except NotNow:
            return None
        self._demoted = state.run
        return self._position(state)


def _role_of(state: State) -> Role:
    if state.master:
        return Role.PRIMARY
    return Role.DEMOTED if state.demoted else Role.REPLICA
