"""What one candidate knows: its phase, its znode, who is ahead."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

from zkelect.core.events import Effect, Reason, Stamp
from zkelect.core.pause import Pause
from zkelect.core.record import Record
from zkelect.core.znodes import KAZOO, Dialect, Entry

__all__ = ["HEIRS", "NONE", "Phase", "State", "Step"]

NONE: Final[frozenset[str]] = frozenset()
"""The one empty set: each new one would take 216 bytes, of each of thousands of candidates."""

HEIRS: Final = 2
"""So many waiting candidates keep a warm lease: after a fail-over nobody tells the
second in line that it has become the first."""


class Phase(StrEnum):
    """Where a candidate stands. "Suspended" is none of them: that is said of the session."""

    IDLE = "idle"
    JOINING = "joining"
    WAITING = "waiting"
    PREPARING = "preparing"
    LEADING = "leading"
    LEAVING = "leaving"


@attrs.frozen(kw_only=True)
class State:
    """One candidate at one instant.

    :param campaign: which call of the user this is for. :param attempt: counts creates.
    :param node: our candidate as far as we know; None before it is made or once it is gone.
    :param sent: a create is under way, or its outcome is unknown.
    :param lost: its outcome was lost with the connection, so that a look must tell.
    :param suspects: znodes with our uuid that are being looked at after a lost reply.
    :param adopted: of those, the ones that belong to this session, with their czxids.
    :param ahead: who is before us, as last known; the last one is watched.
    :param walked: how many of them vanished since the roll was read.
    :param priority: written into our uuid. :param outranked: somebody behind us had a higher
        one when the roll was read. :param chosen: the leader hands over to us.
    :param yields: as a leader, be told when our heir has a higher priority.
    :param look: counts the reads of the record. :param looking: the latest is not answered yet.
    :param term: stamp of the leadership whose body runs, None without one.
    :param released: the body of an ended term need not be waited for any more.
    :param doomed: strays of ours whose deletion is not confirmed.
    :param again: the campaign, and its uuid, to begin once this one has left.
    """

    path: str
    dialect: Dialect = KAZOO
    phase: Phase = Phase.IDLE
    session_id: int | None = None
    connected: bool = False
    campaign: int = 0
    uuid: str = ""
    attempt: int = 0
    node: Entry | None = None
    czxid: int = 0
    sent: bool = False
    lost: bool = False
    suspects: frozenset[str] = NONE
    adopted: tuple[tuple[Entry, int], ...] = ()
    ahead: tuple[Entry, ...] = ()
    walked: int = 0
    priority: int = 0
    outranked: bool = False
    chosen: bool = False
    yields: bool = False
    record: Record | None = None
    look: int = 0
    looking: bool = False
    term: Stamp | None = None
    reason: Reason | None = None
    released: bool = False
    doomed: frozenset[str] = NONE
    again: tuple[int, str] | None = None

    @property
    def stamp(self) -> Stamp:
        """The stamp of the present try."""
        return Stamp(session_id=self.session_id, attempt=self.attempt)

    @property
    def leads(self) -> bool:
        """Whether a leadership is held, serving or not."""
        return self.phase in (Phase.PREPARING, Phase.LEADING)

    @property
    def first(self) -> bool:
        """Whether nobody is ahead of our waiting candidate: only the lease is wanting."""
        return self.phase is Phase.WAITING and not self.ahead

    @property
    def next(self) -> bool:
        """Whether we may be granted at the next event: at most one is ahead."""
        return self.phase is Phase.WAITING and len(self.ahead) <= 1

    @property
    def warm(self) -> bool:
        """Whether probes should check our candidate: it leads, or may have to soon."""
        return self.leads or (self.phase is Phase.WAITING and len(self.ahead) <= HEIRS)

    @property
    def kept_by(self) -> Pause | None:
        """The pause that keeps us from leading, though nobody is ahead."""
        return self.record.paused if self.first and self.record is not None else None

    @property
    def found(self) -> frozenset[str]:
        """What a lost reply made us look at: znodes with our uuid, not judged yet."""
        return self.suspects.union(entry.node for entry, _ in self.adopted)

    def is_heir_of(self, node: str) -> bool:
        """Tell whether that one is just ahead of us: if it leads, all before it are gone."""
        waits = self.phase is Phase.WAITING and self.ahead
        return bool(waits) and self.ahead[-1].node == node

    def is_same_history(self, record: Record | None) -> bool:
        """Tell whether tokens made with that record belong to those made with ours."""
        return self.record is not None and self.record.is_same_history(record)

    def is_evicted_by(self, record: Record | None) -> bool:
        """Tell whether an operator asks our present candidate to go."""
        return self.node is not None and record is not None and record.evicts(self.node.node)

    def is_own(self, node: str) -> bool:
        """Tell our present candidate by its name."""
        return self.node is not None and self.node.node == node


Step = tuple[State, tuple[Effect, ...]]
