"""What a fault proxy remembers of the servers' answers, to give them again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from zkelect.session import wire
from zkelect.testing.conversation import REPLIES, Message
from zkelect.testing.proxy_frames import answer_with, question_of, reply
from zkelect.testing.proxy_names import READS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Memory", "has_older", "stale_answer"]

_MOST_ANSWERS: Final = 10_000
_ACKNOWLEDGED: Final = frozenset({"ping", "auth", "setWatches", "setWatches2"})


class Memory:
    """The last answer to each question, and the welcome of each session.

    :ivar answers: replies by question; see ``question_of``.
    """

    def __init__(self) -> None:
        self.answers: dict[bytes, bytes] = {}
        self._welcomes: dict[int, bytes] = {}

    def remember(self, message: Message) -> None:
        """Keep a reply as the server gave it; the oldest are forgotten."""
        if message.direction != REPLIES:
            return
        if message.name == "connect":
            with contextlib.suppress(wire.MalformedFrame):  # the client will tell
                welcome = wire.decode_connect_response(message.frame)
                self._welcomes[welcome.session_id] = message.data
        elif message.request is not None and message.name in READS:
            question = question_of(message.request)
            self.answers.pop(question, None)
            self.answers[question] = message.data
            if len(self.answers) > _MOST_ANSWERS:
                del self.answers[next(iter(self.answers))]

    def welcome(self, session_id: int) -> bytes | None:
        """Return how a session was welcomed last; it may have ended since."""
        return self._welcomes.get(session_id)

    def answer(self, request: Message) -> bytes | None:
        """Return what a server that hears nothing new would answer, None if it must keep silent."""
        assert request.xid is not None
        if request.name in _ACKNOWLEDGED:
            return reply(request.xid)
        older = self.answers.get(question_of(request)) if request.name in READS else None
        return None if older is None else answer_with(older, request.xid)


def has_older(answers: Mapping[bytes, bytes], message: Message) -> bool:
    """Whether the question that a reply answers was answered before."""
    return message.request is not None and question_of(message.request) in answers


def stale_answer(answers: Mapping[bytes, bytes], message: Message) -> bytes:
    """Return the older answer to the question of a reply that has one."""
    assert message.request is not None
    assert message.xid is not None
    return answer_with(answers[question_of(message.request)], message.xid)
