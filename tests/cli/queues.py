"""Elections as they might be found, put together without a server."""

from __future__ import annotations

from typing import Any, Final

from zkelect.core.handover import Handover, HandoverState
from zkelect.core.record import Record, Term
from zkelect.core.znodes import CURATOR_LATCH, KAZOO, ranked
from zkelect.session.overview import Overview, Standing
from zkelect.token import Token

__all__ = [
    "NOW",
    "PATH",
    "RECORD",
    "curator",
    "election",
    "handover",
    "kazoo",
    "ours",
    "standings",
    "term",
]

NOW: Final = 1_800_000_000.0
PATH: Final = "/elections/billing"
THEIRS: Final = "00000000000040008000000000000000"
RECORD: Final = Record(uuid="0123456789abcdef0123456789abcdef")


def ours(number: int, *, uuid: int | None = None, priority: int = 0) -> str:
    """Return a znode of a candidate of ours."""
    letters = f"{number if uuid is None else uuid:012x}80008000000000000000"
    return f"{KAZOO.prefix(ranked(letters, priority))}{number:010d}"


def kazoo(number: int) -> str:
    """Return a znode of a candidate of kazoo's."""
    return f"{THEIRS}__lock__{number:010d}"


def curator(number: int) -> str:
    """Return a znode of a candidate of Curator's LeaderLatch."""
    return f"{CURATOR_LATCH.prefix(THEIRS)}{number:010d}"


def term(node: str, **changes: Any) -> Term:
    """Return a term of the candidate with this znode, which began an hour ago."""
    token = Token(lineage=RECORD.lineage, generation=1, czxid=0x2A, holder="feedfeedfeedfeed")
    known = {"name": "host-0", "since": NOW - 3600, "count": 7}
    return Term(token=token, node=node, **{**known, **changes})


def election(*children: str, serving: bool = True, **changes: Any) -> Overview:
    """Return an election with these children, whose first candidate leads."""
    roll = KAZOO.read(children)
    written = term(roll.entries[0].node) if serving and roll.entries else None
    known = {"record": RECORD, "term": written, "terms": 7, "counter": len(children)}
    return Overview(path=PATH, roll=roll, **{**known, **changes})


def standings(overview: Overview, **changes: Standing) -> dict[str, Standing]:
    """Return what the znodes tell: names by their places, a session for each."""
    found = {
        entry.node: Standing(
            name=f"host-{place}", size=6, session_id=0x100 + place, since=NOW - 60 * place
        )
        for place, entry in enumerate(overview.roll.entries)
    }
    return {**found, **changes}


def handover(target: str, leader: Term, state: HandoverState = HandoverState.DRIVEN) -> Handover:
    """Return a switchover of this leader."""
    return Handover(
        id="1",
        target=target,
        name="host-2",
        leader=leader.node,
        token=leader.token,
        timeout=30.0,
        by="ada@host-a",
        why="a new kernel",
        state=state,
    )
