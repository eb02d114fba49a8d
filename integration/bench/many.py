"""What thousands of elections on one session cost: to join, and to one that changes hands."""

from __future__ import annotations

import statistics
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from kazoo.client import KazooClient

import zkelect
from bench.samples import Row, Samples
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rows"]

_ELECTIONS: Final = 10_000
_HANDOVERS: Final = 10
"""In one sample; its median counts."""
_TICK: Final = 0.5
_TIMEOUT: Final = 30.0
_WITHIN: Final = 600.0


def rows(rounds: int) -> Iterator[Row]:
    """Measure handovers alone, joins beside bare creates, and handovers among all that joined."""
    with ExitStack() as stack:
        server = LocalEnsemble(tick_time=_TICK, max_session_timeout=_TIMEOUT)
        hosts = stack.enter_context(server).hosts
        heir = stack.enter_context(_connect(hosts))
        with _connect(hosts) as session:
            alone = [_handover(session, heir) for _ in range(rounds)]
        creates, joins = [], []
        first = _join(hosts)
        for _ in range(rounds):
            creates.append(_create(hosts))
            joins.append(_join(hosts))
        session = stack.enter_context(_connect(hosts))
        _lead(session)
        among = [_handover(session, heir) for _ in range(rounds)]
    yield Row(
        figure=f"{_ELECTIONS} joins on one session, until all lead",
        ours=Samples(tuple(joins)),
        unit="s",
        beside=Samples(tuple(creates)),
        beside_what="as many creates, pipelined, by kazoo",
        target="ratio 3",
        note=f"where nobody had stood before, so that parents and records are made: {first:.0f} s",
    )
    yield Row(
        figure=f"handover on a session that leads {_ELECTIONS} others",
        ours=Samples(tuple(among)),
        unit="ms",
        beside=Samples(tuple(alone)),
        beside_what="on a session that leads nothing else",
        target="ratio 1.5",
    )


def _connect(hosts: str) -> zkelect.Session:
    return zkelect.connect(hosts, session_timeout=_TIMEOUT, tick_time=_TICK, timeout=_WITHIN)


def _create(hosts: str) -> float:
    """Create as many ephemeral sequential znodes as candidates would be, and nothing else."""
    with _client(hosts) as client:
        client.ensure_path("/bare")
        begun = time.perf_counter()
        asked = [
            client.create_async("/bare/candidate-", b"", ephemeral=True, sequence=True)
            for _ in range(_ELECTIONS)
        ]
        for answer in asked:
            answer.get()
        return time.perf_counter() - begun


@contextmanager
def _client(hosts: str) -> Iterator[KazooClient]:
    client = KazooClient(hosts, timeout=_TIMEOUT)
    client.start(timeout=_WITHIN)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def _join(hosts: str) -> float:
    with _connect(hosts) as session:
        begun = time.perf_counter()
        _lead(session)
        return time.perf_counter() - begun


def _lead(session: zkelect.Session) -> None:
    """Stand in all elections, and wait until each is led."""
    elections = [zkelect.Election(session, f"/many/{n}") for n in range(_ELECTIONS)]
    for election in elections:
        election.start()
    for election in elections:
        _await(election, zkelect.Phase.LEADING)


class _Heir:
    """Notes when it is elected."""

    def __init__(self) -> None:
        self.at = 0.0
        self.told = threading.Event()

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.at = time.perf_counter()
        self.told.set()

    def suspended(self, leadership: zkelect.Leadership) -> None: ...

    def deposed(self, leadership: zkelect.Leadership) -> None: ...


def _handover(leader: zkelect.Session, heir: zkelect.Session) -> float:
    """Return the milliseconds from resigning to the next one's callback."""
    return statistics.median(_hand_over(leader, heir, n) for n in range(_HANDOVERS)) * 1e3


def _hand_over(leader: zkelect.Session, heir: zkelect.Session, number: int) -> float:
    path, notes = f"/handover/{number}", _Heir()
    first, second = zkelect.Election(leader, path), zkelect.Election(heir, path)
    first.start()
    _await(first, zkelect.Phase.LEADING)
    with second.listen(notes):
        second.start()
        _await(second, zkelect.Phase.WAITING)
        second.candidates()  # asked behind what sets its watches, so they are set
        while heir.now() >= heir.lease.deadline:  # cold
            time.sleep(0.01)
        resigned = time.perf_counter()
        first.resign()
        assert notes.told.wait(_WITHIN)
        first.stop()
        second.stop()
    return notes.at - resigned


def _await(election: zkelect.Election, phase: zkelect.Phase) -> None:
    while election.phase is not phase:
        time.sleep(0.01)
