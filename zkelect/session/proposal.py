"""Who wants to stand, and on what terms: everything is judged before anything is created."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any, Final, Literal

import attrs

from zkelect.core.paths import check_name, normalize
from zkelect.core.znodes import DIALECTS, HIGHEST_PRIORITY
from zkelect.errors import InvalidArgument
from zkelect.session.candidacy import Candidacy
from zkelect.session.functions import check_blocking, check_callable, check_coroutine
from zkelect.session.leadership import Leadership
from zkelect.session.limits import check_timeout
from zkelect.session.session import Session
from zkelect.session.supervision import Conditions, OnSuspended

__all__ = ["DialectName", "Proposal", "default_name"]

DialectName = Literal["kazoo", "curator-latch", "curator-lock", "zkelect"]

_POLICIES: Final = ("until-deadline", "pause-at-once")
_SESSION_FORM: Final = (
    "a zkelect.Session, from connect(); that of an AsyncSession is its .session, and a started "
    "kazoo client is taken over by Session.adopt()"
)
_FUNCTIONS: Final = {
    "eligible": "a function without arguments that returns whether we are fit to lead",
    "prepare": "a function of the leadership",
    "healthy": "a function without arguments that returns whether we are well",
}
_STANDBY: Final = "a function of an observation of who leads"


def default_name() -> str:
    """Return what a candidate is called when its user does not say: host and process."""
    return f"{socket.gethostname()}-{os.getpid()}"


@attrs.frozen(kw_only=True)
class Proposal:
    """What users say of a candidate when they make an election, of whichever face.

    :param awaits: whether its functions may be coroutine functions.
    :raises InvalidArgument: something cannot be right.
    """

    path: str = attrs.field(converter=normalize)
    name: str | None
    address: str
    eligible: Callable[[], Any] | None
    prepare: Callable[[Any], Any] | None
    prepare_timeout: float | None
    healthy: Callable[[], bool] | None
    unhealthy_after: int
    stall_timeout: float | None
    on_suspended: OnSuspended
    dialect: str
    strict: bool
    standby: Callable[[Any], Any] | None = None
    awaits: bool = False
    priority: int = 0

    def __attrs_post_init__(self) -> None:
        """Judge what was said."""
        check_name(self.address, "address")
        self._check_functions()
        self._check_durations()
        if self.on_suspended not in _POLICIES:
            raise InvalidArgument("on_suspended", self.on_suspended, f"one of {_POLICIES}")
        if not isinstance(self.dialect, str) or self.dialect not in DIALECTS:
            raise InvalidArgument("dialect", self.dialect, f"one of {sorted(DIALECTS)}")
        if not isinstance(self.strict, bool):
            raise InvalidArgument("strict", self.strict, "True or False")
        if type(self.priority) is not int or not 0 <= self.priority <= HIGHEST_PRIORITY:
            raise InvalidArgument("priority", self.priority, f"0 to {HIGHEST_PRIORITY}")

    def candidacy(
        self, session: Session, outranked: Callable[[Leadership], None] | None = None
    ) -> Candidacy:
        """Return the candidate; nothing is created on the servers yet.

        :param outranked: called with its leadership, under the session's lock, when a slow
            re-read (every 3 to 5 session timeouts) shows that the heir has a higher priority.
        """
        if not isinstance(session, Session):
            raise InvalidArgument("session", session, _SESSION_FORM)
        session.ensure_usable()
        name = default_name() if self.name is None else self.name
        return Candidacy(
            session,
            path=self.path,
            name=name,
            address=self.address,
            identity=check_name(name),
            dialect=DIALECTS[self.dialect],
            strict=self.strict,
            priority=self.priority,
            outranked=outranked,
            prepares=any(each is not None for each in (self.prepare, self.eligible, self.standby)),
            conditions=Conditions(
                prepare_timeout=self.prepare_timeout,
                healthy=self.healthy,
                unhealthy_after=self.unhealthy_after,
                stall_timeout=self.stall_timeout,
                on_suspended=self.on_suspended,
            ),
        )

    def _check_functions(self) -> None:
        check = check_callable if self.awaits else check_blocking
        for argument, form in _FUNCTIONS.items():
            if getattr(self, argument) is not None:
                check(argument, getattr(self, argument), form)
        if self.standby is not None:
            (check_coroutine if self.awaits else check_blocking)("standby", self.standby, _STANDBY)

    def _check_durations(self) -> None:
        for argument in ("prepare_timeout", "stall_timeout"):
            value = getattr(self, argument)
            check_timeout(value, argument)
            if value == 0:
                raise InvalidArgument(argument, value, "seconds above 0, or None")
        if not isinstance(self.unhealthy_after, int) or self.unhealthy_after < 1:
            raise InvalidArgument("unhealthy_after", self.unhealthy_after, "a number, at least 1")
