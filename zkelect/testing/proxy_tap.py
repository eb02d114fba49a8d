"""Decides what passes of one connection through a fault proxy: rules, isolation, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from zkelect.session import wire
from zkelect.testing.conversation import REPLIES, REQUESTS, Direction, Message
from zkelect.testing.journal import Frame
from zkelect.testing.jute import paths_in
from zkelect.testing.proxy_faults import Fail
from zkelect.testing.proxy_frames import reply, resumed_session
from zkelect.testing.proxy_memory import Memory
from zkelect.testing.tap import Act, End, Hang, Send, Tap, boottime

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from zkelect.testing.journal import Journal
    from zkelect.testing.proxy_numbers import Shift
    from zkelect.testing.proxy_rules import Rule

__all__ = ["FaultTap", "Script"]


@attrs.define(eq=False)
class Script:
    """What is to happen on all connections of one proxy; guarded by the journal's lock.

    :ivar isolated: the servers hear nothing, and the proxy answers as one of them would.
    """

    rules: list[Rule] = attrs.field(factory=list)
    memory: Memory = attrs.field(factory=Memory)
    shifts: list[Shift] = attrs.field(factory=list)
    isolated: bool = False

    def find(self, message: Message) -> Rule | None:
        """Return the rule to fire at a frame; all that it fits have counted it."""
        found: Rule | None = None
        for rule in self.rules:
            if rule.claims(message, free=found is None):
                found = rule
        return found

    def shifted(self, message: Message) -> Message:
        """Return a frame with the numbers that the other side knows."""
        for shift in self.shifts:
            message = shift.apply(message)
        return message


class FaultTap(Tap):
    """Passes whole frames only, each unless a rule fires at it."""

    def __init__(self, cut: Set[Direction], journal: Journal, script: Script) -> None:
        super().__init__(cut, journal)
        self._script = script
        self._failing: dict[int, int] = {}
        self._isolated = False
        self._silent = False

    @property
    def broken(self) -> bool:
        """The two sides no longer know the same, so the connection can never go on."""
        return super().broken or self._isolated

    def begin(self) -> bool:
        """A client has come: return whether the server hears of it."""
        self._look()
        return super().begin()

    def admits(self, direction: Direction) -> bool:
        """Whether what comes now may pass, be it only the end."""
        self._look()
        return super().admits(direction) and not self._isolated

    def take(self, direction: Direction, data: bytes) -> Sequence[Act]:
        """Return what to do now that bytes came."""
        self.admits(direction)  # before they are read: what is owed already counts
        with self.journal.changed:
            messages = self.conversation.read(direction, data)
            return [act for message in messages for act in self._handle(message)]

    def _look(self) -> None:
        """An isolation that was met once lasts: the server has missed something."""
        if self._script.isolated and not self._isolated:
            self._isolated = True
            self._silent = self.conversation.owing

    def _handle(self, message: Message) -> Sequence[Act]:
        if self.admits(message.direction):
            return self._pass(message)
        if self._isolated and super().admits(message.direction):
            return self._stand_in(message)
        if message.name is not None:
            self._note(message, passed=False)
        return ()

    # --- rules ------------------------------------------------------------------------------

    def _pass(self, message: Message) -> Sequence[Act]:
        if message.name is None:
            return (Send(message.direction, message.data),)
        failed = self._failed(message)
        if failed is not None:
            return self._obey(failed)
        message = self._script.shifted(message)
        self._script.memory.remember(message)
        return self._obey(message)

    def _failed(self, message: Message) -> Message | None:
        """Return the failure to give in a reply's place, if its request was to fail."""
        if message.direction == REQUESTS or message.xid not in self._failing:
            return None
        zxid = wire.decode_reply_header(message.frame).zxid
        error = self._failing.pop(message.xid)
        return attrs.evolve(message, data=reply(message.xid, zxid=zxid, error=error))

    def _obey(self, message: Message) -> Sequence[Act]:
        rule = self._script.find(message)
        if rule is None:
            self._note(message, passed=True)
            acts: Sequence[Act] = (Send(message.direction, message.data),)
        else:
            acts = rule.act(message)
            self._note(message, passed=rule.fault.passes, fault=str(rule))
            if isinstance(rule.fault, Fail) and message.xid is not None:
                self._failing[message.xid] = rule.fault.error
        if any(isinstance(act, End | Hang) for act in acts):
            self.break_off(message.direction)
        return acts

    # --- isolation --------------------------------------------------------------------------

    def _stand_in(self, message: Message) -> Sequence[Act]:
        """Answer as a server that has lost the others and does not know it."""
        if message.name is None:
            return ()
        answer = self._answer(message) if message.direction == REQUESTS else None
        self._note(message, passed=False, fault="isolated")
        if answer is None:
            return ()
        made = attrs.evolve(message, direction=REPLIES, data=answer, request=message)
        self._note(made, passed=True, fault="isolated")
        return (Send(REPLIES, answer),)

    def _answer(self, request: Message) -> bytes | None:
        """Return the answer to give.

        Answers keep the order of the requests: after one that must wait for a quorum none
        is given, but to pings and the like.
        """
        memory = self._script.memory
        if request.name == "connect":
            return memory.welcome(resumed_session(request))
        answer = memory.answer(request)
        if request.xid is not None and request.xid >= 0:
            self._silent |= answer is None
            return None if self._silent else answer
        return answer

    # --- notes ------------------------------------------------------------------------------

    def _note(self, message: Message, *, passed: bool, fault: str = "") -> None:
        replies = message.direction == REPLIES and message.xid is not None
        self.journal.note(
            Frame(
                direction=message.direction,
                name=str(message.name),
                xid=message.xid,
                at=boottime(),
                passed=passed,
                paths=paths_in(message),
                error=wire.decode_reply_header(message.frame).error if replies else 0,
                fault=fault,
            )
        )
