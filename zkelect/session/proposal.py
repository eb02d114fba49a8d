"""Who wants to stand, and on what terms: everything is judged before anything is created."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any, Final, Literal

import attrs

from zkelect.core.paths import check_name, normalize
from zkelect.core.znodes import DIALECTS
from zkelect.errors import InvalidArgument
from zkelect.session.candidacy import Candidacy
from zkelect.session.limits import check_timeout
from zkelect.session.session import Session
from zkelect.session.supervision import Conditions, OnSuspended

__all__ = ["DialectName", "Proposal"]

DialectName = Literal["kazoo", "curator-latch", "curator-lock", "zkelect"]

_POLICIES: Final = ("until-deadline", "pause-at-once")


@attrs.frozen(kw_only=True)
class Proposal:
    """What users say of a candidate when they make an election, of whichever face.

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

    def __attrs_post_init__(self) -> None:
        """Judge what was said."""
        check_name(self.address, "address")
        self._check_durations()
        if self.on_suspended not in _POLICIES:
            raise InvalidArgument("on_suspended", self.on_suspended, f"one of {_POLICIES}")
        if self.dialect not in DIALECTS:
            raise InvalidArgument("dialect", self.dialect, f"one of {sorted(DIALECTS)}")

    def candidacy(self, session: Session) -> Candidacy:
        """Return the candidate; nothing is created on the servers yet."""
        session.ensure_usable()
        name = f"{socket.gethostname()}-{os.getpid()}" if self.name is None else self.name
        return Candidacy(
            session,
            path=self.path,
            name=name,
            address=self.address,
            identity=check_name(name),
            dialect=DIALECTS[self.dialect],
            strict=self.strict,
            prepares=self.prepare is not None or self.eligible is not None,
            conditions=Conditions(
                prepare_timeout=self.prepare_timeout,
                healthy=self.healthy,
                unhealthy_after=self.unhealthy_after,
                stall_timeout=self.stall_timeout,
                on_suspended=self.on_suspended,
            ),
        )

    def _check_durations(self) -> None:
        for argument in ("prepare_timeout", "stall_timeout"):
            value = getattr(self, argument)
            check_timeout(value, argument)
            if value == 0:
                raise InvalidArgument(argument, value, "seconds above 0, or None")
        if self.unhealthy_after < 1:
            raise InvalidArgument("unhealthy_after", self.unhealthy_after, "at least 1")
