"""What it costs to join the queue, and to be promoted in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.frames import join_of, requests_before, round_trips
from bench.samples import Row, Samples
from bench.standing import TICK, TIMEOUT, WITHIN, Candidate
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rows"]


def rows(rounds: int) -> Iterator[Row]:
    """Measure joining behind a leader, and promotion when that one leaves."""
    joins, promotions, delays = [], [], []
    with (
        LocalEnsemble(tick_time=TICK, max_session_timeout=2 * TIMEOUT) as zookeeper,
        Candidate(zookeeper.hosts, "A") as first,
        Candidate(zookeeper.hosts, "B") as second,
    ):
        for number in range(rounds):
            path = f"/bench/queue-{number}"
            leader = first.stand(path)
            leader.elected.result(WITHIN)
            second.mark()
            heir = second.stand(path, heir=True)
            joins.append(round_trips(join_of(second.frames(), heir=True)))
            second.await_probe()
            second.mark()
            leader.leave()
            granted = heir.granted.result(WITHIN)
            frames = second.frames()
            promotions.append(requests_before(frames, granted))
            event = next(frame for frame in frames if frame.name == "event")
            delays.append((granted - event.at) * 1e3)
            heir.elected.result(WITHIN)
            heir.leave()
    yield Row(
        figure="promotion: requests from the deletion event to the grant",
        ours=Samples(tuple(float(len(asked)) for asked in promotions)),
        target="0",
    )
    yield Row(
        figure="promotion: from the event on the wire to the grant",
        ours=Samples(tuple(delays)),
        unit="ms",
    )
    least = min(joins, key=len)
    yield Row(
        figure=f"join behind a leader: round trips, the least of {rounds} counts",
        ours=Samples.of(len(least)),
        target="2",
        note=" | ".join(" + ".join(batch) for batch in least),
    )
