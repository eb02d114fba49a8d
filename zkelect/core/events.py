"""What happened (events, in) and what to do (effects, out): frozen values, nothing else.

Every effect carries a stamp, ``(session_id, attempt)``, and every answer echoes it.
Without it a late answer of an earlier attempt is taken for one of the present: an
orphan znode, work of an old session done under a new one.

A class that adds no field needs no attrs of its own: it is frozen, compared and shown by
what it inherits, and equality looks at the class.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from zkelect.core.handover import Handover
from zkelect.core.record import Record
from zkelect.errors import ZkelectError

__all__ = [
    "EVENTS",
    "Answer",
    "Campaigned",
    "Cancelled",
    "Changed",
    "Commit",
    "Committed",
    "Create",
    "Created",
    "Delete",
    "DeleteRefused",
    "Deleted",
    "Effect",
    "Event",
    "Fail",
    "Finish",
    "GraceEnded",
    "Grant",
    "HandOver",
    "HandoverRead",
    "MakeParent",
    "Outranked",
    "ParentMade",
    "ParentMissing",
    "Prepared",
    "Proven",
    "ReadHandover",
    "ReadRecord",
    "ReadRoll",
    "Reason",
    "RecordTouched",
    "Recorded",
    "Refused",
    "Request",
    "Rest",
    "Rested",
    "Returned",
    "RollDue",
    "Rolled",
    "Serve",
    "SessionExpired",
    "SessionOpened",
    "SessionResumed",
    "SessionSuspended",
    "Stamp",
    "StartGrace",
    "TermEnded",
    "TermEvent",
    "Vanished",
    "Void",
    "Watch",
    "Watched",
    "Withdraw",
]


class Reason(StrEnum):
    """Why a leadership ended."""

    RESIGNED = "resigned"
    """The leader left on purpose."""
    SWITCHED_OVER = "switched-over"
    """It handed over to the candidate right behind it, as it was asked to."""
    LAPSED = "lapsed"
    """The lease ran out: no quorum commit proved the session in time."""
    EXPIRED = "expired"
    """The ensemble expired or closed the session, or answered with another one."""
    EVICTED = "evicted"
    """An operator asked it to go, or somebody deleted the candidate's znode."""
    STALLED = "stalled"
    """The body made no progress within ``stall_timeout``."""
    UNHEALTHY = "unhealthy"
    """``healthy`` said no, several times in a row."""
    UNPREPARED = "unprepared"
    """``prepare`` failed or took too long: it never served."""
    INELIGIBLE = "ineligible"
    """``eligible`` said no at the grant."""
    DECLINED = "declined"
    """The group it stood for leads as many elections as its limit allows: it never served."""
    FENCED = "fenced"
    """A guarded store has seen a higher token."""
    RECORD_CHANGED = "record-changed"
    """The election's record has another lineage or generation now."""
    MACHINE_SUSPENDED = "machine-suspended"
    """The machine slept: no clock of it can be trusted about the meantime."""
    FORKED = "forked"
    """This process is a fork of the one that leads."""
    CLOSED = "closed"
    """The session was closed by this program."""

    @property
    def voluntary(self) -> bool:
        """Whether the leader gave it up by itself, with nothing wrong."""
        return self in (Reason.RESIGNED, Reason.SWITCHED_OVER, Reason.DECLINED)


@attrs.frozen(kw_only=True)
class Stamp:
    """Which try of which session an effect belongs to."""

    session_id: int | None
    attempt: int


# --- events ---------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Event:
    """Something happened.

    :param leased: whether the session's lease is valid at this moment.
    """

    leased: bool = False


@attrs.frozen(kw_only=True)
class Campaigned(Event):
    """The user wants to stand; ``uuid`` will name the candidate."""

    campaign: int
    uuid: str


@attrs.frozen(kw_only=True)
class Cancelled(Event):
    """The user stops waiting: timeout, Ctrl-C, close."""

    campaign: int


@attrs.frozen(kw_only=True)
class SessionOpened(Event):
    """A new session is connected; ``uuid`` names its candidates."""

    session_id: int
    uuid: str


class SessionSuspended(Event):
    """The connection is gone, the session may live; all that was under way is unknown."""

    __slots__ = ()


class SessionResumed(Event):
    """The same session is connected again; its watches are gone."""

    __slots__ = ()


class SessionExpired(Event):
    """The session is over, and its ephemeral znodes with it."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class TermEvent(Event):
    """Something about one leadership; dropped when it is not the present one."""

    term: Stamp


class Prepared(TermEvent):
    """The leader has caught up and may serve."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class TermEnded(TermEvent):
    """The leadership ends for a reason the machine cannot see by itself."""

    reason: Reason


class Returned(TermEvent):
    """The leader's body is over: nothing of its work runs any more."""

    __slots__ = ()


class GraceEnded(TermEvent):
    """The lease that the body could still count on when its term ended has run out."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Answer(Event):
    """The answer to an effect, with its stamp; dropped when that is not the present one."""

    stamp: Stamp


@attrs.frozen(kw_only=True)
class Created(Answer):
    """Our candidate exists. ``owner`` is its ephemeralOwner."""

    node: str
    czxid: int
    owner: int


class ParentMissing(Answer):
    """There is no parent to stand in."""

    __slots__ = ()


class ParentMade(Answer):
    """Parent and record exist now."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Refused(Answer):
    """A request failed for a reason that trying again does not mend."""

    error: ZkelectError


class Committed(Answer):
    """A quorum commit came after all we sent before: the barrier is passed."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Rolled(Answer):
    """The parent's children and the record, read behind our own create."""

    children: tuple[str, ...]
    record: Record | None


@attrs.frozen(kw_only=True)
class Watched(Answer):
    """The znode exists, and its watch is armed.

    :param touched: its data was written since it was made: that is how a leader, and its
        heir, are told of a switchover.
    """

    node: str
    czxid: int
    owner: int
    touched: bool = False


@attrs.frozen(kw_only=True)
class Vanished(Answer):
    """The znode is gone: its watch said DELETED, or a read or probe found no node."""

    node: str


@attrs.frozen(kw_only=True)
class Changed(Answer):
    """The znode's data changed, which used up its watch."""

    node: str


@attrs.frozen(kw_only=True)
class Deleted(Answer):
    """A znode of ours is gone at our wish."""

    node: str


@attrs.frozen(kw_only=True)
class DeleteRefused(Answer):
    """A znode of ours cannot be deleted, and trying again does not help."""

    node: str
    error: ZkelectError


class Rested(Answer):
    """The jittered wait is over."""

    __slots__ = ()


class Proven(Answer):
    """A probe was committed; see ``leased``."""

    __slots__ = ()


class RollDue(Answer):
    """It is time to read the roll again, in case a watch event was lost."""

    __slots__ = ()


class RecordTouched(Answer):
    """The record was changed or deleted: its watch says so, or a probe."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Recorded(Answer):
    """What the record says, read by that look; dropped when a later look is under way."""

    look: int
    record: Record | None


@attrs.frozen(kw_only=True)
class HandoverRead(Answer):
    """The page of the switchover; None when there is none."""

    handover: Handover | None


EVENTS = (
    Campaigned,
    Cancelled,
    SessionOpened,
    SessionSuspended,
    SessionResumed,
    SessionExpired,
    Prepared,
    TermEnded,
    Returned,
    GraceEnded,
    Created,
    ParentMissing,
    ParentMade,
    Refused,
    Committed,
    Rolled,
    Watched,
    Vanished,
    Changed,
    Deleted,
    DeleteRefused,
    Rested,
    Proven,
    RollDue,
    RecordTouched,
    Recorded,
    HandoverRead,
)
"""Every event there is; the transition table has a row for each."""


# --- effects --------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Effect:
    """Something to do, stamped with the try it belongs to."""

    stamp: Stamp


class Request(Effect):
    """Something to ask of the servers: only while connected, never queued for later."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Create(Request):
    """Make the candidate: ephemeral, sequential. Answer: Created, ParentMissing, Refused."""

    uuid: str


class ReadRoll(Request):
    """Read children and record on the same connection. Answer: Rolled, Refused."""

    __slots__ = ()


class MakeParent(Request):
    """Make record and parent, persistent. Answer: ParentMade, Refused."""

    __slots__ = ()


class Commit(Request):
    """Pass a quorum barrier. Answer: Committed, ParentMissing, Refused."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Watch(Request):
    """Watch one znode. Answer: Watched or Vanished, later Vanished or Changed."""

    node: str


@attrs.frozen(kw_only=True)
class Delete(Request):
    """Delete a stray znode of ours. Answer: Deleted, DeleteRefused."""

    node: str


@attrs.frozen(kw_only=True)
class Withdraw(Request):
    """Delete our candidate; when it led, write the end of its term in the same commit."""

    node: str
    reason: Reason | None


@attrs.frozen(kw_only=True)
class ReadRecord(Request):
    """Read the record and watch it. Answer: Recorded, later RecordTouched."""

    look: int


class ReadHandover(Request):
    """Read the page of the switchover. Answer: HandoverRead."""

    __slots__ = ()


class Rest(Effect):
    """Wait a jittered moment, so that a crowd does not come back at once. Answer: Rested."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Grant(Effect):
    """This candidate leads: its leadership begins, with one token."""

    node: str
    czxid: int
    record: Record


class Serve(Effect):
    """The leader has caught up: tell those who listen."""

    __slots__ = ()


class Outranked(Effect):
    """Our heir has a higher priority than we who lead; who wants to know may resign for it."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class HandOver(Effect):
    """We lead, and are asked to see to it that somebody else does."""

    handover: Handover


@attrs.frozen(kw_only=True)
class Void(Effect):
    """The leadership is over, now. The body may still run."""

    reason: Reason


class StartGrace(Effect):
    """Wait until the lease the body may still count on has run out. Answer: GraceEnded."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Fail(Effect):
    """The campaign cannot succeed; its caller gets the error."""

    campaign: int
    error: ZkelectError


@attrs.frozen(kw_only=True)
class Finish(Effect):
    """This campaign and all before it are over; nothing of them is left on the servers."""

    campaign: int
