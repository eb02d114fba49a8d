"""Letting others go first: a waiting candidate steps back to the end of the queue.

It deletes its znode and makes a new one, so its next token is above all there are, and
no token ever falls. Only the heir does it, the one right behind the leader: a leader
is never removed this way, and whoever is further back need not care yet. Two reasons:

* Somebody waiting behind it has a higher priority. Each such step brings the first of the
  highest priority one place forward, and equals never yield, so it ends.
* The leader hands over to somebody behind it.
"""

from __future__ import annotations

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.handover import Handover, HandoverState
from zkelect.core.moves import doom, stand
from zkelect.core.state import State, Step
from zkelect.core.znodes import Roll


def step_back(s: State) -> Step:
    """Leave our place and stand anew; on one connection the deletion is done first."""
    own = s.node
    assert own is not None  # a waiting candidate has a znode
    s, deletion = doom(evolve(s, node=None), {own.node})
    s, effects = stand(s)
    return s, (*deletion, *effects)


def yields_to(s: State, roll: Roll) -> bool:
    """Whether we are the heir in this roll, and somebody behind us should lead before us."""
    own = s.node
    if s.chosen or own is None or roll.find(own.node) is None or len(roll.ahead_of(own)) != 1:
        return False
    return roll.preferred_behind(own) is not None


def look_around(s: State, event: ev.Watched) -> Step:
    """Who is just ahead may lead and hand over; and as the heir we look who is behind us.

    The page of a switchover comes first, for whom it names need not yield to anybody.
    """
    if not s.is_heir_of(event.node):
        return s, ()
    if event.touched:
        return s, (ev.ReadHandover(stamp=s.stamp),)
    return look_behind(s)


def look_behind(s: State) -> Step:
    """Read a roll only if somebody there had a higher priority when we last saw one."""
    return s, (ev.ReadRoll(stamp=s.stamp),) if s.outranked and len(s.ahead) == 1 else ()


def make_way(s: State, event: ev.HandoverRead) -> Step:
    """The heir steps back for whom the leader hands over to, unless it is the heir itself."""
    if not _is_driven(s, event.handover):
        return look_behind(evolve(s, chosen=False))
    if event.handover is not None and s.is_own(event.handover.target):
        return evolve(s, chosen=True), ()
    return step_back(s)


def _is_driven(s: State, handover: Handover | None) -> bool:
    if handover is None or handover.state is not HandoverState.DRIVEN:
        return False
    return s.is_heir_of(handover.leader)
