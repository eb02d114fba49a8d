"""Leader election on Apache ZooKeeper: ordered, leased, fenced.

    with zkelect.connect("zk1,zk2,zk3/app") as session:
        election = zkelect.Election(session, "/elections/billing", name="host-a")
        with election.campaign() as leadership:
            ...

Exactly one candidate leads at a time. It knows until when that is proven
(``leadership.remaining()``), and its token lets guarded stores refuse a stale one.

What needs a session is imported when it is first used: a service that only checks
tokens loads no ZooKeeper client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from zkelect import errors
from zkelect.errors import *  # noqa: F403  # errors.__all__ is the list, kept in one place
from zkelect.token import Token

if TYPE_CHECKING:
    from zkelect import server, stores, testing
    from zkelect.aio import AsyncElection
    from zkelect.aio_leadership import AsyncLeadership
    from zkelect.aio_observer import AsyncObservation
    from zkelect.aio_session import AsyncSession, aconnect
    from zkelect.core.acts import Act
    from zkelect.core.events import Reason
    from zkelect.core.pause import Pause
    from zkelect.core.record import Term
    from zkelect.core.state import Phase
    from zkelect.decorator import leader_only
    from zkelect.election import Election
    from zkelect.group import ElectionGroup
    from zkelect.observer import Observation
    from zkelect.registry import Registration, Registry
    from zkelect.session.access import Digest, Sasl, Tls
    from zkelect.session.callbacks import Callbacks
    from zkelect.session.connecting import connect
    from zkelect.session.evicting import Evicted, EvictionOutcome
    from zkelect.session.leadership import Leadership
    from zkelect.session.roll import Candidate
    from zkelect.session.session import Session
    from zkelect.session.status import Status
    from zkelect.znodes import Following, Znode, Znodes

__all__ = [
    "Act",
    "AsyncElection",
    "AsyncLeadership",
    "AsyncObservation",
    "AsyncSession",
    "Callbacks",
    "Candidate",
    "Digest",
    "Election",
    "ElectionGroup",
    "Evicted",
    "EvictionOutcome",
    "Following",
    "Leadership",
    "Observation",
    "Pause",
    "Phase",
    "Reason",
    "Registration",
    "Registry",
    "Sasl",
    "Session",
    "Status",
    "Term",
    "Tls",
    "Token",
    "Znode",
    "Znodes",
    "aconnect",
    "connect",
    "leader_only",
    "server",
    "stores",
    "testing",
]
__all__ += errors.__all__

_HOMES: Final = {
    "Act": "zkelect.core.acts",
    "AsyncElection": "zkelect.aio",
    "AsyncLeadership": "zkelect.aio_leadership",
    "AsyncObservation": "zkelect.aio_observer",
    "AsyncSession": "zkelect.aio_session",
    "Callbacks": "zkelect.session.callbacks",
    "Candidate": "zkelect.session.roll",
    "Digest": "zkelect.session.access",
    "Election": "zkelect.election",
    "ElectionGroup": "zkelect.group",
    "Evicted": "zkelect.session.evicting",
    "EvictionOutcome": "zkelect.session.evicting",
    "Following": "zkelect.znodes",
    "Leadership": "zkelect.session.leadership",
    "Observation": "zkelect.observer",
    "Pause": "zkelect.core.pause",
    "Phase": "zkelect.core.state",
    "Reason": "zkelect.core.events",
    "Registration": "zkelect.registry",
    "Registry": "zkelect.registry",
    "Sasl": "zkelect.session.access",
    "Session": "zkelect.session.session",
    "Status": "zkelect.session.status",
    "Term": "zkelect.core.record",
    "Tls": "zkelect.session.access",
    "Znode": "zkelect.znodes",
    "Znodes": "zkelect.znodes",
    "aconnect": "zkelect.aio_session",
    "connect": "zkelect.session.connecting",
    "leader_only": "zkelect.decorator",
}


def __getattr__(name: str) -> object:
    if name in ("server", "stores", "testing"):
        return import_module(f"zkelect.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'zkelect' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
