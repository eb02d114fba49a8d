"""Asks ``/leader`` every ten milliseconds, as load balancers do, and judges what was answered."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from typing import TYPE_CHECKING, Final, Self

import attrs
from election.waiting import WITHIN, boottime

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Poll", "Poller", "assert_never_two", "assert_remaining_kept"]

PACE: Final = 0.01
_REQUEST: Final = b"GET /leader HTTP/1.0\r\n\r\n"


@attrs.frozen
class Poll:
    """One question and its answer.

    :ivar asked: boot-clock instant before the connection was opened.
    :ivar answered: instant at which all of the answer was there.
    :ivar status: None: there was no answer.
    """

    asked: float
    answered: float
    status: int | None
    token: str | None
    remaining: float


class Poller:
    """Asks one page again and again, also while it answers nothing.

    :ivar polls: those that have come to an end, in the order of their answers.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._polls: list[Poll] = []
        self._open: set[float] = set()
        self._told = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._poll()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(WITHIN)

    @property
    def polls(self) -> list[Poll]:
        with self._told:
            return self._polls[:]

    def wait(self, status: int, *, after: float = -math.inf) -> Poll:
        """Wait for this answer to a question that was asked later than that."""

        def found() -> Poll | None:
            fitting = (p for p in self._polls if p.status == status and p.asked > after)
            return next(fitting, None)

        with self._told:
            self._told.wait_for(found, WITHIN)
            poll = found()
            assert poll is not None, f"no {status}; the last answers: {self._polls[-3:]}"
            return poll

    def wait_answered(self, before: float) -> list[Poll]:
        """Wait until all that was asked before then has its answer; return these."""
        with self._told:
            self._told.wait_for(lambda: min(self._open, default=math.inf) > before, WITHIN)
            return [poll for poll in self._polls if poll.asked <= before]

    async def _poll(self) -> None:
        asking: set[asyncio.Task[None]] = set()
        while not self._stop.is_set():
            asking.add(asyncio.create_task(self._ask()))
            await asyncio.sleep(PACE)
            asking = {task for task in asking if not task.done()}
        for task in asking:
            task.cancel()

    async def _ask(self) -> None:
        asked = boottime()
        with self._told:
            self._open.add(asked)
        answer = await _answer(self.port)
        poll = _read(asked, answer)
        with self._told:
            self._open.discard(asked)
            self._polls.append(poll)
            self._told.notify_all()


async def _answer(port: int) -> bytes:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    try:
        writer.write(_REQUEST)
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()


def _read(asked: float, answer: bytes) -> Poll:
    head, _, body = answer.partition(b"\r\n\r\n")
    if not body:
        return Poll(asked, boottime(), None, None, 0.0)
    told = json.loads(body)
    status = int(head.split()[1])
    return Poll(asked, boottime(), status, told["token"], told["remaining"])


def assert_never_two(polls: Iterable[Poll]) -> None:
    """No term's 200 was asked for after a later term's 200 had been answered.

    Each answer was true at some instant between the two. Tokens tell which term is later.
    """
    found = _served(polls)
    print(f"{len(found)} times 200, in {len({poll.token for poll in found})} terms")
    for poll, first in _successions(found):
        assert poll.asked <= first, f"{poll}, although the next term was told at {first}"


def assert_remaining_kept(polls: Iterable[Poll]) -> None:
    """So long as an answer gave its leader, counted from the question, nobody else led."""
    for poll, first in _successions(_served(polls)):
        assert poll.asked + poll.remaining <= first, f"{poll}, but the next one led at {first}"


def _served(polls: Iterable[Poll]) -> list[Poll]:
    found = [poll for poll in polls if poll.status == 200]
    assert len({poll.token for poll in found}) > 1, "nobody else led"
    return found


def _successions(found: list[Poll]) -> Iterable[tuple[Poll, float]]:
    """Each answer with the instant at which a later term was told for the first time."""
    for poll in found:
        later = [other.answered for other in found if str(other.token) > str(poll.token)]
        if later:
            yield poll, min(later)
