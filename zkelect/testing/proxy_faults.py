"""What a fault does to a frame: a value in, acts out, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import attrs

from zkelect.errors import InvalidArgument
from zkelect.session import wire
from zkelect.testing.conversation import Message
from zkelect.testing.proxy_frames import answer_with, harmless_request, question_of
from zkelect.testing.tap import Act, End, Gate, Hang, Hold, Send

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Delay", "Drop", "Fail", "Fault", "Rewrite", "Swallow", "Tear", "Then", "check_then"]

Then = Literal["cut", "hang"]
"""What becomes of the connection after a loss: it ends, or it stays open and carries no more.

One reply missing between others is no fault of TCP, and no client is made for it: kazoo
ends its loop for good with "xids do not match".
"""

_THENS: Final = {"cut": End, "hang": Hang}


def check_then(then: str) -> None:
    """Refuse what cannot become of a connection.

    :raises InvalidArgument: neither 'cut' nor 'hang'.
    """
    if then not in _THENS:
        raise InvalidArgument("then", then, "'cut' or 'hang'")


class Fault(Protocol):
    """Something that happens to a frame.

    :ivar passes: whether the frame counts as passed on.
    """

    @property
    def passes(self) -> bool: ...

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        """Return what to do in the frame's place."""


def pass_on(message: Message) -> Send:
    return Send(message.direction, message.data)


@attrs.frozen
class Drop:
    """The frame is lost, and its connection with it."""

    then: Then
    passes = False

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return (_THENS[self.then](message.direction),)


@attrs.frozen
class Tear:
    """The connection is lost in the middle of the frame."""

    size: int
    then: Then
    passes = False

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        size = min(self.size, len(message.data) - 1)
        begun = Send(message.direction, message.data[:size])
        return begun, _THENS[self.then](message.direction)


@attrs.frozen
class Swallow:
    """The frame is lost, all others pass: for watch events, which nobody awaits."""

    passes = False

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return ()


@attrs.frozen
class Delay:
    """The frame waits, and what comes behind it in its direction."""

    passes = True

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return Hold(message.direction, gate), pass_on(message)


@attrs.frozen
class Rewrite:
    """Other bytes pass in the frame's place."""

    rewrite: Callable[[Message], bytes]
    passes = True

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return (Send(message.direction, self.rewrite(message)),)


@attrs.frozen
class Fail:
    """The request fails. Its answer is rewritten when it comes, so that answers keep order.

    :param done: the server does it all the same; otherwise a harmless read takes its place.
    """

    error: int
    done: bool
    passes = True

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        assert message.xid is not None  # it is no handshake
        data = message.data if self.done else harmless_request(message.xid)
        return (Send(message.direction, data),)


def stale_answer(answers: Mapping[bytes, bytes], message: Message) -> bytes:
    """Return the older answer to the same question, for a reply that has one."""
    assert message.request is not None
    assert message.xid is not None
    return answer_with(answers[question_of(message.request)], message.xid)


def has_older(answers: Mapping[bytes, bytes], message: Message) -> bool:
    """Whether the question of a reply was answered before."""
    return message.request is not None and question_of(message.request) in answers


def is_good(message: Message) -> bool:
    """Whether a reply brings what was asked for."""
    return message.xid is not None and wire.decode_reply_header(message.frame).error == 0
