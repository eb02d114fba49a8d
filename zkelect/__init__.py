"""Leader election on Apache ZooKeeper: ordered, leased, fenced.

    with zkelect.connect("zk1,zk2,zk3/app") as session:
        election = zkelect.Election(session, "/elections/billing", name="host-a")
        with election.campaign() as leadership:
            ...

Exactly one candidate leads at a time. It knows until when that is proven
(``leadership.remaining()``), and its token lets guarded stores refuse a stale one.
"""

from zkelect import errors, stores
from zkelect.core.events import Reason
from zkelect.core.state import Phase
from zkelect.election import Election
from zkelect.errors import *  # noqa: F403  # errors.__all__ is the list, kept in one place
from zkelect.session.access import Digest, Sasl, Tls
from zkelect.session.candidacy import Callbacks
from zkelect.session.connecting import connect
from zkelect.session.leadership import Leadership
from zkelect.session.roll import Candidate
from zkelect.session.session import Session
from zkelect.token import Token

__all__ = [
    "Callbacks",
    "Candidate",
    "Digest",
    "Election",
    "Leadership",
    "Phase",
    "Reason",
    "Sasl",
    "Session",
    "Tls",
    "Token",
    "connect",
    "stores",
    *errors.__all__,
]
