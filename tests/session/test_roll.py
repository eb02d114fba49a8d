"""Reading who stands: several questions, of which the last one tells for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from zkelect.core.znodes import KAZOO
from zkelect.session import roll
from zkelect.session.gateway import Failure, Fault, Stat

LOST = Failure(fault=Fault.UNKNOWN, cause=ConnectionError("the link is gone"))
NODE = f"{'0' * 32}__lock__0000000007"


class Gateway:
    """Answers at once; of the names it loses the first answers, with the link."""

    def __init__(self) -> None:
        self.asked = 0

    def children(self, path: str, done: Callable[[Any], None]) -> None:
        done((NODE,))

    def get(self, path: str, done: Callable[[Any], None]) -> None:
        self.asked += 1
        done(LOST if self.asked == 1 else (b"host-a", Stat(czxid=1, version=0, owner=1)))

    def exists(self, path: str, done: Callable[[Any], None]) -> None:
        done(LOST if self.asked == 1 else None)


def test_names_whose_answers_are_lost_with_the_link_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gateway = Gateway()

    def ask(_: object, send: Callable[[Any, Any], None], timeout: float) -> Any:
        while True:
            answers: list[Any] = []
            send(gateway, answers.append)
            if answers[0] is not LOST:
                return answers[0]

    monkeypatch.setattr(roll, "ask", ask)
    session: Any = None
    (candidate,) = roll.read_roll(session, "/e", KAZOO, 1.0)
    assert (candidate.name, gateway.asked) == ("host-a", 2)
