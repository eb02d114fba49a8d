"""What the fence adds to a write of a znode."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from kazoo.client import KazooClient

import zkelect
from bench.samples import Row, Samples
from bench.standing import TICK, TIMEOUT, WITHIN
from zkelect.stores.znode import ZnodeFence
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["rows"]

_WRITES: Final = 300
_TURN: Final = 10
"""So many of one kind, then as many of the other: what slows the server slows both."""
_DATA: Final = b"x" * 100


def rows(rounds: int) -> Iterator[Row]:
    """Time set_data of a guarded transaction beside a plain set, in turns."""
    with (
        LocalEnsemble(tick_time=TICK, max_session_timeout=2 * TIMEOUT) as zookeeper,
        zkelect.connect(zookeeper.hosts, session_timeout=TIMEOUT, tick_time=TICK) as session,
    ):
        kazoo = KazooClient(zookeeper.hosts, timeout=TIMEOUT)
        kazoo.start(timeout=WITHIN)
        try:
            yield from _rows(session, kazoo, rounds)
        finally:
            kazoo.stop()
            kazoo.close()


def _rows(session: zkelect.Session, kazoo: KazooClient, rounds: int) -> Iterator[Row]:
    """Beside the same connection the fence alone shows; beside kazoo's own, our connection too."""
    kazoo.create("/znode", _DATA)
    with zkelect.Election(session, "/bench/znodes").campaign() as leadership:

        def guarded() -> None:
            with ZnodeFence(leadership).transaction() as tx:
                tx.set_data("/znode", _DATA)

        def unguarded() -> None:
            session.link.client.set("/znode", _DATA)

        def plain() -> None:
            kazoo.set("/znode", _DATA)

        kinds = guarded, unguarded, plain
        _time(*kinds)  # all know their way now
        samples = zip(*(_time(*kinds) for _ in range(rounds)), strict=True)
        ours, same, other = map(Samples, samples)
    for beside, what, target in (
        (same, "set on its connection", "1.2 x"),
        (other, "set of a kazoo client", ""),
    ):
        yield Row(
            figure="guarded set_data of a znode",
            ours=ours,
            unit="us",
            beside=beside,
            beside_what=what,
            target=target,
        )


def _time(*writes: Callable[[], None]) -> list[float]:
    """Return the mean time of each, in microseconds, done in turns."""
    totals = [0.0] * len(writes)
    for _ in range(_WRITES // _TURN):
        for which, write in enumerate(writes):
            began = time.perf_counter()
            for _ in range(_TURN):
                write()
            totals[which] += time.perf_counter() - began
    return [total / _WRITES * 1e6 for total in totals]
