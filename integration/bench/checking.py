"""What it costs to ask a leadership whether it still holds."""

from __future__ import annotations

import time
import timeit
from typing import TYPE_CHECKING, Final

from bench.samples import Row, Samples
from bench.standing import TICK, TIMEOUT, WITHIN, Candidate
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rows"]

_CALLS: Final = 100_000
_EXPRESSIONS: Final = {
    "leadership.check()": "0.3",
    "leadership.remaining()": "",
    "leadership.token": "",
}
_PLAIN: Final = "leadership.token"


def rows(rounds: int) -> Iterator[Row]:
    """Take the processor time of each expression beside a plain attribute, in turns."""
    with (
        LocalEnsemble(tick_time=TICK, max_session_timeout=2 * TIMEOUT) as zookeeper,
        Candidate(zookeeper.hosts, "A") as candidate,
    ):
        campaign = candidate.stand("/bench/check")
        known = {"leadership": campaign.elected.result(WITHIN)}
        timers = {
            code: timeit.Timer(code, globals=known, timer=time.thread_time) for code in _EXPRESSIONS
        }
        times: dict[str, list[float]] = {code: [] for code in timers}
        for _ in range(rounds):
            for code, timer in timers.items():
                times[code].append(timer.timeit(_CALLS) / _CALLS * 1e6)
        campaign.leave()
    plain = Samples(tuple(times.pop(_PLAIN)))
    for code, taken in times.items():
        yield Row(
            figure=code,
            ours=Samples(tuple(taken)),
            unit="us",
            beside=plain,
            beside_what=_PLAIN,
            target=f"{_EXPRESSIONS[code]} us" if _EXPRESSIONS[code] else "",
        )
