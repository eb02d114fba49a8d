"""What a fault does to a frame: a value in, acts out, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol

import attrs

from zkelect.errors import InvalidArgument
from zkelect.testing.proxy_frames import harmless_request
from zkelect.testing.tap import Act, End, Hang, Hold, Send

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.testing.conversation import Message
    from zkelect.testing.tap import Gate

__all__ = ["Delay", "Drop", "Fail", "Fault", "Rewrite", "Swallow", "Tear", "Then"]

Then = Literal["cut", "hang"]
"""What becomes of the connection after a loss: it ends, or it stays open and carries no more.

One reply missing between others is no fault of TCP, and no client is made for it: kazoo
ends its loop for good with "xids do not match".
"""

_THENS: Final[dict[str, type[End | Hang]]] = {"cut": End, "hang": Hang}


def _known(_: object, __: object, then: str) -> None:
    if then not in _THENS:
        raise InvalidArgument("then", then, "'cut' or 'hang'")


def _size(_: object, __: object, size: int) -> None:
    if size < 0:
        raise InvalidArgument("size", size, "a number of bytes, from 0")


class Fault(Protocol):
    """Something that happens to a frame.

    :ivar passes: whether the frame counts as passed on.
    """

    @property
    def passes(self) -> bool: ...

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        """Return what to do in the frame's place."""


@attrs.frozen
class Drop:
    """The frame is lost, and its connection with it."""

    then: Then = attrs.field(validator=_known)
    passes: ClassVar[bool] = False

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return (_THENS[self.then](message.direction),)


@attrs.frozen
class Tear:
    """The connection is lost in the middle of the frame."""

    size: int = attrs.field(validator=_size)
    then: Then = attrs.field(validator=_known)
    passes: ClassVar[bool] = False

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        size = min(self.size, len(message.data) - 1)
        begun = Send(message.direction, message.data[:size])
        return begun, _THENS[self.then](message.direction)


@attrs.frozen
class Swallow:
    """The frame is lost, all others pass: for watch events, which nobody awaits."""

    passes: ClassVar[bool] = False

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return ()


@attrs.frozen
class Delay:
    """The frame waits, and what comes behind it in its direction."""

    passes: ClassVar[bool] = True

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return Hold(message.direction, gate), Send(message.direction, message.data)


@attrs.frozen
class Rewrite:
    """Other bytes pass in the frame's place."""

    rewrite: Callable[[Message], bytes]
    passes: ClassVar[bool] = True

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        return (Send(message.direction, self.rewrite(message)),)


@attrs.frozen
class Fail:
    """The request fails. Its answer is rewritten when it comes, so that answers keep order.

    :param done: the server does it all the same; otherwise a harmless read takes its place.
    """

    error: int
    done: bool

    @property
    def passes(self) -> bool:
        """Whether the server gets it."""
        return self.done

    def act(self, message: Message, gate: Gate) -> tuple[Act, ...]:
        assert message.xid is not None  # it is no handshake
        data = message.data if self.done else harmless_request(message.xid)
        return (Send(message.direction, data),)
