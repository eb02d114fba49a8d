"""MariaDB as a resource of the promotion engine: one server and what is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.recipes.clock import now
from zkelect.recipes.deadlines import left
from zkelect.recipes.deadman import DeadMan
from zkelect.recipes.mariadb import checks, claiming, following, gate, intake, process, promoting
from zkelect.recipes.mariadb.asking import NoAnswer, connect_to
from zkelect.recipes.mariadb.place import split_address
from zkelect.recipes.mariadb.state import State, read_state
from zkelect.recipes.member import Answer, Member, Observed, Role
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect import Leadership
    from zkelect.recipes.mariadb.history import Promotion
    from zkelect.recipes.mariadb.place import Place
    from zkelect.recipes.position import Position

__all__ = ["MariaDB"]

_WATCHER: Final = "zkelect.recipes.mariadb.watcher"
_CHECK_TIMEOUT: Final = 60.0
_LOOK_TIMEOUT: Final = 2.0
_CLAIM_TIMEOUT: Final = 10.0
_OBEY: Final = 1.0
"""Seconds in which a server that is to be demoted at once has to obey, at most."""
_FULL: Final = (1040, 1203)  # too many connections, of all or of one account
# The driver's for no connection, and for one that is lost; and the server's shutdown in progress.
_NOBODY: Final = (2003, 2006, 2013, 1053)


class MariaDB:
    """One MariaDB 10.11 server, looked after by the agent on its host.

    Promises: it starts closed, and follows nobody, whoever starts it (:meth:`check` insists on
    it); it takes writes only between ``open`` and ``demote``, and not beyond the deadline of the
    last ``arm``. Without ``fence`` nobody takes the place of a primary whose agent is not there to
    say that it is demoted, whatever the policy is.

    Does not promise: that what it confirmed is on another server, for MariaDB replicates
    asynchronously. There is no rewinding: a server that has transactions which the primary has not
    keeps them, takes no writes, and needs a rebuild.

    :param member: who this is; its address is ``host:port``.
    :param domain: of the fence in which each primary claims its token; one for all members.
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
        split_address(member.address)
        self._member = member
        self._place = place
        self._domain = domain
        self._fence = fence
        self._dead_man = DeadMan(_WATCHER, {})
        self._promotion: Promotion | None = None

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
            state = read_state(self._place, now() + _LOOK_TIMEOUT)
        except NoAnswer as error:
            gone = process.find_server(self._place.data_directory) is None
            role = Role.STOPPED if gone else Role.UNKNOWN
            return Observed(role=role, healthy=False, detail=str(error))
        why = intake.objection(state) or _newness(state)
        return Observed(
            role=_role_of(state),
            position=state.position,
            healthy=not why,
            system=state.promotions[0].branch if state.promotions else "",
            behind=state.behind,
            detail=why or state.told,
        )

    def reach(self, member: Member) -> Answer:
        """Ask another member's server whether it takes writes."""
        try:
            with connect_to(self._place, member.address, now() + _LOOK_TIMEOUT) as client:
                closed = client.row("SELECT @@global.read_only AS it")["it"]
        except NoAnswer as error:
            return _answer_of(error)
        return Answer.NO if closed else Answer.YES

    # --- the old primary --------------------------------------------------------------------

    def demote(self, *, planned: bool, deadline: float) -> Position | None:
        """Close it, now and for every start; its followers go on receiving what it has.

        Planned: statements that run may end. Else they are killed, and so is a server that does
        not obey within a moment.
        """
        self._promotion = None
        if planned and process.answers(self._place, deadline):
            gate.close(self._place, deadline)
            return read_state(self._place, deadline).position
        try:
            gate.close_at_once(self._place, now() + min(left(deadline) / 2, _OBEY))
        except NotNow:
            process.kill(self._place.data_directory, deadline)
        return self._come_back(deadline)

    def fence(self, member: Member, deadline: float) -> Answer:
        """Have another member's server switched off, by the means that was given.

        Without one the answer is UNKNOWN, with which nobody goes on: what the old primary may have
        confirmed meanwhile could not be taken back here.
        """
        return Answer.UNKNOWN if self._fence is None else self._fence(member, deadline)

    def arm(self, deadline: float) -> None:
        """Have the server killed at that instant unless this is called again before."""
        self._dead_man.arm(deadline, str(self._place.data_directory))

    def disarm(self) -> None:
        """Have it left alone."""
        self._dead_man.disarm()

    def close(self) -> None:
        """End what runs beside this process: the server is stopped by nobody from now on."""
        self._dead_man.close()

    # --- a replica becomes primary ------------------------------------------------------------

    def freeze(self, until: Position | None, deadline: float) -> Position:
        """Follow nobody any more, once ``until`` is there."""
        self._promotion = None
        process.ensure_running(self._place, deadline)
        if until is not None:
            intake.wait_received(self._place, until, deadline)
        return intake.stop_intake(self._place, deadline)

    def catch_up(self, deadline: float) -> Position:
        """Nothing to do: what is counted is applied."""
        return read_state(self._place, deadline).position

    def promote(self, deadline: float) -> Position:
        """Become the primary, closed."""
        process.ensure_running(self._place, deadline)
        promotion = promoting.become_primary(self._place, self._promotion, deadline)
        self._promotion = promotion
        return promoting.locate_primary(self._place, promotion, deadline)

    def verify(self, deadline: float) -> Position:
        """Return where the primary stands, on the new branch.

        :raises NotNow: it is told to follow another one, or was demoted.
        """
        return promoting.locate_primary(self._place, self._promotion, deadline)

    def claim(self, leadership: Leadership) -> None:
        """Write the token into the fence: the first write on the new branch, which it begins.

        :raises NotNow: it was demoted meanwhile.
        """
        promotion = self._promotion
        if promotion is None:
            raise NotNow("the server was demoted meanwhile")
        deadline = min(now() + _CLAIM_TIMEOUT, leadership.deadline)
        claiming.claim(self._place, self._domain, leadership, promotion, deadline)

    def open(self, deadline: float) -> Position:
        """Let writers in.

        :raises NotNow: it is not the primary that was promoted.
        """
        self.verify(deadline)
        gate.open_for_writes(self._place, deadline)
        return self.verify(deadline)

    # --- the others -----------------------------------------------------------------------------

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        """Follow the primary, if all that it has is a part of what the primary has."""
        self._promotion = None
        process.ensure_running(self._place, deadline)
        following.join(self._place, primary.address, deadline)

    # --- within -----------------------------------------------------------------------------------

    def _come_back(self, deadline: float) -> Position | None:
        """Return what it has, started if need be; None: it takes no writes, and does not tell."""
        try:
            process.ensure_running(self._place, deadline)
            return read_state(self._place, deadline).position
        except NotNow:
            return None


def _role_of(state: State) -> Role:
    if state.writable:
        return Role.PRIMARY
    return Role.REPLICA if state.following else Role.DEMOTED


def _newness(state: State) -> str:
    return "" if state.promotions else "it has not been sent the first promotion yet"


def _answer_of(error: NoAnswer) -> Answer:
    """Tell what a refusal means: nothing there takes writes only if nobody answers."""
    if error.code in _FULL:
        return Answer.YES
    return Answer.NO if error.code in _NOBODY and not error.ours else Answer.UNKNOWN
