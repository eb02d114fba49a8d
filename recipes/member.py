"""The servers of one cluster, and what the agent of each says of it."""

from __future__ import annotations

from enum import StrEnum

import attrs

from zkelect.recipes.position import Position

__all__ = ["Answer", "Done", "Heartbeat", "Member", "Observed", "Outcome", "Role"]


class Answer(StrEnum):
    """What is known of a question that may have no answer now."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Role(StrEnum):
    """What a server is at present, as its own agent sees it."""

    PRIMARY = "primary"
    """It takes writes, or would if somebody reached it."""
    REPLICA = "replica"
    DEMOTED = "demoted"
    """It was a primary, takes no writes, and will not when it is restarted either."""
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """How a duty went."""

    DONE = "done"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Member:
    """One server of the cluster.

    :ivar name: of server and agent, unique in the cluster.
    :ivar address: where the others reach the server; what it looks like is the resource's.
    :ivar priority: decides between servers that have the same data; the higher one wins.
    :ivar candidate: False: it is never promoted.
    """

    name: str
    address: str = ""
    priority: int = 0
    candidate: bool = True


@attrs.frozen(kw_only=True)
class Observed:
    """What a resource finds when it looks at its own server.

    :ivar position: what it has durably; None when that cannot be told now.
    :ivar healthy: whether it could be the primary; of a demoted one: could it be again.
    :ivar system: what all members of one cluster have in common, such as a system identifier.
    :ivar behind: how much it knew to lack when it last heard of the primary, in offsets.
    :ivar rebuild: why it cannot join any more and must be made anew; empty: it can.
    :ivar detail: anything else, for people.
    """

    role: Role
    position: Position | None = None
    healthy: bool = True
    system: str = ""
    behind: int | None = None
    rebuild: str = ""
    detail: str = ""


@attrs.frozen(kw_only=True)
class Done:
    """How the last duty of an agent went.

    :ivar serial: of the page that asked for it.
    :ivar token: of the leadership in the primary's election with which it was done.
    :ivar answer: whether the other server is fenced, when that was the duty.
    """

    serial: int
    outcome: Outcome
    position: Position | None = None
    token: str = ""
    answer: Answer | None = None
    detail: str = ""


@attrs.frozen(kw_only=True)
class Heartbeat:
    """What an agent says; it is there as long as the agent's session.

    :ivar sees: whether the primary's server answers this one directly, and takes writes.
    :ivar witnessed: the server that was asked for that.
    :ivar token: of its leadership in the primary's election, while it has one.
    :ivar trouble: what it is asked for and has not done yet, and why; empty: nothing.
    :ivar rules: its policy, as :meth:`.choice.Policy.told` tells it.
    """

    member: Member
    observed: Observed
    done: Done | None = None
    sees: Answer = Answer.UNKNOWN
    witnessed: str | None = None
    token: str = ""
    trouble: str = ""
    rules: str = ""

    @property
    def name(self) -> str:
        """The member's."""
        return self.member.name

    def answered(self, serial: int) -> Done | None:
        """Return how the duty of that page went, None while nothing is known."""
        return self.done if self.done is not None and self.done.serial == serial else None
