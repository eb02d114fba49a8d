"""What a session costs while nothing happens."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bench.samples import Row, Samples
from bench.standing import TICK, TIMEOUT, WITHIN, Candidate
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rows"]

_SETTLED: Final = 3
"""So many commits after the grant it is probes alone: its own, and the term's page before."""


def rows(rounds: int) -> Iterator[Row]:
    """Count the threads of a session, and a leader's probes."""
    with LocalEnsemble(tick_time=TICK, max_session_timeout=2 * TIMEOUT) as zookeeper:
        before = set(threading.enumerate())
        with Candidate(zookeeper.hosts, "A") as candidate:
            campaign = candidate.stand("/bench/steady")
            campaign.elected.result(WITHIN)
            threads = _session_threads(before)
            probes = _probes_per_second(candidate, rounds)
            campaign.leave()
    yield Row(
        figure="threads of a session",
        ours=Samples.of(len(threads)),
        target="4",
        note=", ".join(sorted(threads)),
    )
    yield Row(
        figure=f"probes of a leader, T = {TIMEOUT:g} s",
        ours=Samples(tuple(probes)),
        unit="/s",
        target="1.5 /s",
    )


def _session_threads(before: set[threading.Thread]) -> list[str]:
    """Name the new threads, but for the forwarder's and the one that campaigns."""
    new = [thread.name for thread in threading.enumerate() if thread not in before]
    return [name for name in new if "forwarder" not in name and "(_stand)" not in name]


def _probes_per_second(candidate: Candidate, rounds: int) -> list[float]:
    for _ in range(_SETTLED):
        candidate.await_probe()
    candidate.mark()
    for _ in range(rounds + 1):
        candidate.await_probe()
    sent = [f.at for f in candidate.frames() if (f.name, f.direction) == ("multi", "requests")]
    return [1 / (later - earlier) for earlier, later in pairwise(sent)]
