"""One server, looked after by hooks: the resource for the engine's agent."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from zkelect import InvalidArgument
from zkelect.recipes.clock import now
from zkelect.recipes.deadman import DeadMan
from zkelect.recipes.hooks import tree
from zkelect.recipes.hooks.answer import Said
from zkelect.recipes.hooks.closing import describe, target_of
from zkelect.recipes.hooks.failures import HookFailed, HookMissing
from zkelect.recipes.hooks.order import Order, Verb
from zkelect.recipes.member import Answer, Member, Observed, Role
from zkelect.recipes.resource import NeedsRebuild, NotNow, Unfit

if TYPE_CHECKING:
    from zkelect import Leadership
    from zkelect.recipes.hooks.executables import Hooks
    from zkelect.recipes.position import Position

__all__ = ["HookedServer"]

_log: Final = logging.getLogger("zkelect.recipes")
_CHECK_TIMEOUT: Final = 60.0
_WATCHER: Final = "zkelect.recipes.hooks.watcher"


class HookedServer:
    """A server of any kind; what there is to do hooks do.

    Promises: each hook ends by its deadline, or is killed with all that came of it; an answer that
    cannot be read is a failure; what a hook does not say is not assumed. The hook ``close`` is
    called by a process of its own at the deadline of the last ``arm``.

    Does not promise: that the hooks do what they say.

    :param look_timeout: seconds for ``position`` and ``reach``, which are called all the time.
    """

    def __init__(self, member: Member, hooks: Hooks, *, look_timeout: float = 2.0) -> None:
        if not 0 < look_timeout < float("inf"):
            raise InvalidArgument("look_timeout", look_timeout, "seconds above 0")
        self._member = member
        self._hooks = hooks
        self._look_timeout = look_timeout
        self._dead_man = DeadMan(_WATCHER, describe(hooks, member))
        self._token = ""
        self._lock = threading.Lock()
        self._armed: float | None = None
        self._process = ""

    @property
    def member(self) -> Member:
        """Who this is."""
        return self._member

    @property
    def hooks(self) -> Hooks:
        """What does it."""
        return self._hooks

    # --- looking --------------------------------------------------------------------------

    def check(self) -> None:
        """Look whether the hooks are there, and ask ``check`` if that is.

        :raises Unfit: they are not, or it failed.
        """
        self._hooks.check()
        try:
            self._do(Verb.CHECK, now() + _CHECK_TIMEOUT)
        except HookMissing:
            pass  # nothing to look at
        except (HookFailed, NotNow) as error:
            raise Unfit(str(error)) from error
        self._dead_man.begin()

    def observe(self) -> Observed:
        """Ask ``position``; when it does not answer, nothing is known of the server."""
        try:
            return self._look(now() + self._look_timeout)
        except (HookFailed, NotNow) as error:
            return Observed(role=Role.UNKNOWN, healthy=False, detail=str(error))

    def reach(self, member: Member) -> Answer:
        """Ask ``reach``; without it nobody can tell."""
        return self._inquire(Verb.REACH, member, now() + self._look_timeout)

    # --- the old primary --------------------------------------------------------------------

    def demote(self, *, planned: bool, deadline: float) -> Position | None:
        """Ask ``demote``; in haste the position is not asked for."""
        said = self._do(Verb.DEMOTE, deadline, planned=planned)
        return self._where(said, deadline) if planned else said.position

    def fence(self, member: Member, deadline: float) -> Answer:
        """Ask ``fence``: NO without one, and UNKNOWN when it does not say how it went."""
        return self._inquire(Verb.FENCE, member, deadline, missing=Answer.NO)

    def arm(self, deadline: float) -> None:
        """Have ``close`` called at that instant unless this is called again before."""
        with self._lock:
            self._armed = deadline
            self._dead_man.arm(deadline, target_of(self._token, self._process))

    def disarm(self) -> None:
        """Have it left alone; there is no leadership any more."""
        with self._lock:
            self._armed = None
            self._dead_man.disarm()
            self._token = ""

    def close(self) -> None:
        """End what runs beside this process: the server is closed by nobody from now on."""
        self._dead_man.close()

    # --- a replica becomes primary ------------------------------------------------------------

    def freeze(self, until: Position | None, deadline: float) -> Position:
        """Ask ``freeze``."""
        return self._where(self._do(Verb.FREEZE, deadline, position=until), deadline)

    def catch_up(self, deadline: float) -> Position:
        """Ask ``catch-up``; without it nothing is received that is not applied."""
        try:
            said = self._do(Verb.CATCH_UP, deadline)
        except HookMissing:
            said = Said()
        return self._where(said, deadline)

    def promote(self, deadline: float) -> Position:
        """Ask ``promote``."""
        return self._where(self._do_watched(Verb.PROMOTE, deadline), deadline)

    def verify(self, deadline: float) -> Position:
        """Ask ``position``, whatever ``promote`` said.

        :raises HookFailed: it is no primary.
        """
        seen = self._look(deadline)
        if seen.role is not Role.PRIMARY:
            raise HookFailed(Verb.PROMOTE, f"ended well, and the server is {seen.role}")
        return _known(seen)

    def claim(self, leadership: Leadership) -> None:
        """Ask ``claim``, if there is one, with the token in its environment from now on."""
        self._token = str(leadership.check())
        try:
            self._do_watched(Verb.CLAIM, leadership.deadline)
        except HookMissing:
            _log.debug("%s has no hook that claims", self._member.name)

    def open(self, deadline: float) -> Position:
        """Ask ``open``."""
        return self._where(self._do_watched(Verb.OPEN, deadline), deadline)

    # --- the others -----------------------------------------------------------------------------

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        """Ask ``follow``.

        :raises NeedsRebuild: it says so.
        """
        said = self._do(Verb.FOLLOW, deadline, other=primary, position=position)
        if said.rebuild:
            raise NeedsRebuild(said.rebuild)

    # --- within -----------------------------------------------------------------------------------

    def _do(self, verb: Verb, deadline: float, **told: Any) -> Said:
        order = Order(verb=verb, member=self._member, **told)
        return self._hooks.ask(Said, order, deadline, self._token)

    def _do_watched(self, verb: Verb, deadline: float) -> Said:
        """Do a step towards a primary: the dead-man knows of it, and ends it before it closes."""
        order = Order(verb=verb, member=self._member)
        try:
            return self._hooks.ask(Said, order, deadline, self._token, began=self._watch)
        finally:
            self._process = ""

    def _watch(self, pid: int) -> None:
        with self._lock:
            self._process = tree.identify(pid)
            if self._armed is not None:
                self._dead_man.arm(self._armed, target_of(self._token, self._process))

    def _look(self, deadline: float) -> Observed:
        order = Order(verb=Verb.POSITION, member=self._member)
        return self._hooks.ask(Observed, order, deadline, self._token)

    def _where(self, said: Said, deadline: float) -> Position:
        """Return the position that was told, or ask for it."""
        return _known(self._look(deadline)) if said.position is None else said.position

    def _inquire(
        self, verb: Verb, member: Member, deadline: float, missing: Answer = Answer.UNKNOWN
    ) -> Answer:
        """Return the answer about another member; UNKNOWN when there is none."""
        try:
            said = self._do(verb, deadline, other=member)
        except HookMissing:
            return missing
        except (HookFailed, NotNow) as error:
            _log.warning("%s about %s: %s", self._member.name, member.name, error)
            return Answer.UNKNOWN
        return Answer.UNKNOWN if said.answer is None else said.answer


def _known(seen: Observed) -> Position:
    if seen.position is None:
        raise HookFailed(Verb.POSITION, "told no position")
    return seen.position
