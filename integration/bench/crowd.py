"""How many processes one death wakes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from bench.samples import Row, Samples
from bench.standing import TICK, TIMEOUT, WITHIN, Candidate
from zkelect.testing import LocalEnsemble, expire

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Crowd", "rows"]

_SIZE: Final = 50


class Crowd:
    """Candidates in one queue, each on a session of its own, the leader first."""

    def __init__(self, server: str, path: str, size: int) -> None:
        self._server, self._path, self._size = server, path, size
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._queue = [
                stack.enter_context(Candidate(self._server, f"candidate-{number}"))
                for number in range(self._size)
            ]
            self._campaigns = [candidate.stand(self._path) for candidate in self._queue]
            self._campaigns[0].elected.result(WITHIN)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for campaign in reversed(self._campaigns):
            campaign.leave()
        self._stack.close()

    def end_leader(self) -> int:
        """End the leader's session as the ensemble would; return how many others were told.

        Each of them is asked a question afterwards: an event that the death had caused
        would have come before its answer (ZooKeeper Programmer's Guide, "What ZooKeeper
        Guarantees about Watches").
        """
        dead, *self._queue = self._queue
        over, *self._campaigns = self._campaigns
        told = [survivor.forwarder.replies["event"] for survivor in self._queue]
        expire(dead.session)
        self._campaigns[0].elected.result(WITHIN)
        for campaign in self._campaigns:
            campaign.election.leader(timeout=WITHIN)
        over.leave()
        return sum(
            survivor.forwarder.replies["event"] > before
            for survivor, before in zip(self._queue, told, strict=True)
        )


def rows(rounds: int) -> Iterator[Row]:
    """End one leader after the other in a crowd that gets no smaller than it must."""
    with (
        LocalEnsemble(tick_time=TICK, max_session_timeout=2 * TIMEOUT) as zookeeper,
        Crowd(zookeeper.hosts, "/bench/crowd", _SIZE) as crowd,
    ):
        woken = [float(crowd.end_leader()) for _ in range(rounds)]
    yield Row(
        figure=f"processes woken by a leader's death, {_SIZE} candidates",
        ours=Samples(tuple(woken)),
        target="1",
    )
