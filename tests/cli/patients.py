"""Facts to make findings of: somebody healthy, and what can be wrong with them."""

from __future__ import annotations

from typing import Any, Final

import attrs

from zkelect.cli.doctor.facts import Election, Ensemble, Facts, Host, Look, Server, Session, Spread
from zkelect.core.record import Term
from zkelect.core.znodes import KAZOO, Entry
from zkelect.token import Token

__all__ = [
    "HEALTHY",
    "KAZOO_UUID",
    "PATH",
    "election_with",
    "ensemble_of",
    "look_with",
    "ours",
    "serving",
    "with_election",
    "with_ensemble",
    "with_host",
    "with_session",
]

PATH: Final = "/elections/billing"
KAZOO_UUID: Final = "00000000000040008000000000000000"
_QUICK: Final = Spread(median=0.001, worst=0.002, count=20)


def ours(number: int, sequence: int | None = None) -> str:
    """Return the znode of a candidate of ours."""
    place = number if sequence is None else sequence
    return f"{number:012x}80008{number:015x}__lock__{place:010d}"


def serving(name: str, mode: str = "follower", **changes: Any) -> Server:
    server = Server(
        name=name,
        connect=0.001,
        handshake=0.003,
        granted=10.0,
        least=4.0,
        most=40.0,
        version="3.8.0",
        mode=mode,
        tick=2.0,
        synced=2 if mode == "leader" else None,
        sessions=frozenset({11, 12}),
    )
    return attrs.evolve(server, **changes)


def ensemble_of(*servers: Server, **changes: Any) -> Ensemble:
    return Ensemble(**{"servers": servers, "voters": len(servers), **changes})


def look_with(*children: str, first_in_office: bool = True, **changes: Any) -> Look:
    """Return a look at candidates, each in a session of its own, the first one in office."""
    roll = KAZOO.read(children)
    owners = {entry: 11 + place for place, entry in enumerate(roll.entries)}
    look = Look(roll=roll, owners=owners, size=100)
    if first_in_office and roll.entries:
        look = attrs.evolve(look, names={roll.entries[0]: "host-a"}, term=_term(roll.entries[0]))
    return attrs.evolve(look, **changes)


def _term(entry: Entry) -> Term:
    token = Token.issue(lineage="0" * 16, generation=1, czxid=7, session_id=11)
    return Term(token=token, node=entry.node, name="host-a")


def election_with(look: Look, **changes: Any) -> Election:
    """Return an election that looked like that both times."""
    election = Election(
        path=PATH,
        exists=True,
        recorded=True,
        next_sequence=3,
        acls={PATH: ("digest:ops:x:cdrwa",)},
        sizes={f"{PATH}.zkelect/history": 300},
        before=look,
        now=look,
    )
    return attrs.evolve(election, **changes)


HEALTHY: Final = Facts(
    hosts="zk1:2181,zk2:2181,zk3:2181",
    ensemble=ensemble_of(serving("zk1:2181", "leader"), serving("zk2:2181"), serving("zk3:2181")),
    session=Session(
        asked=10.0, granted=10.0, tick=2.0, schemes=("digest",), reads=_QUICK, commits=_QUICK
    ),
    host=Host(measured=3.0, pause=0.002, slept=0.0, ahead=0.01, doubt=0.01),
    election=election_with(look_with(ours(1), ours(2))),
)
"""Nothing is to be found here."""


def with_ensemble(*servers: Server, **changes: Any) -> Facts:
    return attrs.evolve(HEALTHY, ensemble=ensemble_of(*servers, **changes))


def with_session(**changes: Any) -> Facts:
    return attrs.evolve(HEALTHY, session=attrs.evolve(HEALTHY.session, **changes))


def with_host(**changes: Any) -> Facts:
    assert HEALTHY.host is not None
    return attrs.evolve(HEALTHY, host=attrs.evolve(HEALTHY.host, **changes))


def with_election(look: Look, **changes: Any) -> Facts:
    return attrs.evolve(HEALTHY, election=election_with(look, **changes))
