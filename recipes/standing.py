"""Where one server stands, as its agent knows it: for load balancers and probes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import attrs

from zkelect.recipes.member import Observed, Role
from zkelect.recipes.page import Page, Phase

__all__ = ["Standing", "answers_reads", "pages_of"]

_Answer = tuple[bool, Mapping[str, object]]
_STALE: Final = 10.0
"""Seconds after which what was seen of the server counts for nothing: the agent hangs."""


@attrs.frozen(kw_only=True)
class Standing:
    """One server at one moment; nothing to guard a write with.

    :ivar path: of the cluster. :ivar name: of the member.
    :ivar primary: whether the server was open for writes, under a lease that ran: while one
        process says so no other can.
    :ivar replica: whether it is a standby that answers reads: it follows the primary, or will as
        soon as there is one.
    :ivar role: as the agent saw it last. :ivar behind: what it lacked, in the server's own units;
        None: unknown.
    :ivar remaining: seconds until the agent demotes the primary if the lease is not renewed.
    :ivar token: of the leadership under which it is open; None: it is not.
    :ivar connected: whether the link to ZooKeeper was up.
    :ivar usable: False when the agent's session is over for good.
    """

    path: str
    name: str
    primary: bool
    replica: bool
    role: Role
    behind: int | None
    remaining: float
    token: str | None
    connected: bool
    usable: bool


def answers_reads(page: Page | None, name: str, observed: Observed, *, age: float) -> bool:
    """Return whether a server is a standby that one may read from.

    While the primary is changed its standbys follow nobody, and have what they had: whoever reads
    there goes on reading.

    :param age: seconds since it was observed.
    """
    if observed.rebuild or not observed.healthy or age >= _STALE:
        return False
    if observed.role is Role.REPLICA:
        return True
    changing = page is not None and page.phase is not Phase.STEADY and page.primary != name
    return changing and observed.role is Role.DEMOTED


class _Standing(Protocol):
    def standing(self) -> Standing:
        """Return where the server stands now, at once."""


def pages_of(agent: _Standing) -> dict[str, Callable[[], _Answer]]:
    """Return an agent's pages, for :func:`zkelect.server.serve_pages`.

    ``/primary``, and ``/`` the same: the server takes writes. ``/replica``: it answers reads, and
    only those. ``/health``: the agent can do its work, whatever its server does, and also while
    ZooKeeper is away.
    """
    return {
        "/": lambda: _tell_primary(agent.standing()),
        "/primary": lambda: _tell_primary(agent.standing()),
        "/replica": lambda: _tell_replica(agent.standing()),
        "/health": lambda: _tell_health(agent.standing()),
    }


def _tell_primary(standing: Standing) -> _Answer:
    return standing.primary, _told(standing)


def _tell_replica(standing: Standing) -> _Answer:
    return standing.replica, _told(standing)


def _tell_health(standing: Standing) -> _Answer:
    return standing.usable, {"healthy": standing.usable, "connected": standing.connected}


def _told(standing: Standing) -> Mapping[str, object]:
    return {
        "path": standing.path,
        "name": standing.name,
        "primary": standing.primary,
        "replica": standing.replica,
        "role": str(standing.role),
        "behind": standing.behind,
        "remaining": math.floor(standing.remaining * 1000) / 1000,  # never more than there is
        "token": standing.token,
        "connected": standing.connected,
    }
