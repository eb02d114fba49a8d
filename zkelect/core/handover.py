"""A switchover, as it is written beside its election: who asked for what, and how far it is.

One page, ``<path>.zkelect/switchover``, a JSON object like the page of the term. It is
bound to one leader's znode and token: what it says of any other leader is history.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final

import attrs

from zkelect.core.record import record_path
from zkelect.core.znodes import Entry, Roll
from zkelect.errors import ZkelectError
from zkelect.token import Token

__all__ = [
    "Handover",
    "HandoverState",
    "decode_handover",
    "encode_handover",
    "handover_path",
    "next_in_line",
]

_text: Final = attrs.validators.instance_of(str)


class HandoverState(StrEnum):
    """How far a switchover is. Only the leader drives it, and says that it is done."""

    ASKED = "asked"
    """The leader has not seen it yet."""
    DRIVEN = "driven"
    """The leader waits until the target is right behind it; those between step back."""
    DONE = "done"
    """The target was right behind the leader, which resigns now."""
    WITHDRAWN = "withdrawn"
    """It is off; ``reason`` says why."""


@attrs.frozen(kw_only=True)
class Handover:
    """One switchover.

    :param id: tells it from any other. :param target: the znode of who shall lead.
    :param name: what that candidate is called. :param leader: the znode of who leads.
    :param token: of that leadership. :param timeout: seconds the leader may take, counted on
        the leader's own clock from when it hears of it.
    :param by, why: of whoever asked, for people. :param reason: why it was withdrawn.
    :param version: the page's, so that every write is of what was read; not part of the data.
    """

    id: str = attrs.field(validator=_text)
    target: str = attrs.field(validator=_text)
    name: str = attrs.field(validator=_text)
    leader: str = attrs.field(validator=_text)
    token: Token
    timeout: float = attrs.field(validator=attrs.validators.instance_of((int, float)))
    by: str = attrs.field(default="", validator=_text)
    why: str = attrs.field(default="", validator=_text)
    state: HandoverState = HandoverState.ASKED
    reason: str = attrs.field(default="", validator=_text)
    version: int = attrs.field(default=0, eq=False)

    def __str__(self) -> str:
        """Say it as messages do."""
        why = f" ({self.why})" if self.why else ""
        return f"switchover to {self.name!r} that {self.by!r} asks for{why}"

    @property
    def pending(self) -> bool:
        """Whether it still can come true."""
        return self.state in (HandoverState.ASKED, HandoverState.DRIVEN)


def next_in_line(roll: Roll, handover: Handover) -> Entry | str:
    """Return who is right behind the leader; or the reason why the target will never be."""
    if roll.foreign is not None:
        return f"{roll.foreign.node} is a candidate of another library: it does not step back"
    others = [entry for entry in roll.entries if entry.node != handover.leader]
    if all(entry.node != handover.target for entry in others):
        return f"{handover.name!r} has left the queue"
    return others[0]


def handover_path(path: str) -> str:
    """Return where the switchovers of an election are written."""
    return f"{record_path(path)}/switchover"


def encode_handover(handover: Handover) -> bytes:
    """Return the page's bytes."""
    fields = attrs.asdict(handover, recurse=False)
    del fields["version"]
    fields |= {"token": str(handover.token), "state": str(handover.state)}
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def decode_handover(data: bytes, version: int) -> Handover | None:
    """Read the page; None when its bytes are no switchover."""
    try:
        fields: dict[str, Any] = json.loads(data)
        token, state = Token.parse(fields["token"]), HandoverState(fields["state"])
        known = {name: fields[name] for name in attrs.fields_dict(Handover) if name in fields}
        return Handover(**{**known, "token": token, "state": state, "version": version})
    except (KeyError, TypeError, ValueError, RecursionError, ZkelectError):
        return None
