"""How long nobody leads: when a leader resigns, and when one is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import zkelect
from bench.samples import Row, Samples
from zkelect.session.clock import SystemClock
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rows"]

_LIBRARIES: Final = ("zkelect", "kazoo")
_TICK: Final = 0.2
_TIMEOUT: Final = 2.0
_CONTESTANT: Final = Path(__file__).with_name("contestant.py")
_boottime: Final = SystemClock().boottime


class _Contestant:
    """A process that stands; see contestant.py for what it tells."""

    def __init__(self, library: str, hosts: str, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_CONTESTANT), library, hosts, path, str(_TIMEOUT), str(_TICK)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self, expected: str) -> float:
        """Wait for the next event and return its instant."""
        assert self._process.stdout is not None
        event, _, instant = self._process.stdout.readline().partition(" ")
        assert event == expected, f"{event!r} instead of {expected!r}"
        return float(instant)

    def leave(self) -> float:
        """Let it resign; return the instant at which it was about to."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.hear("leaves")

    def kill(self) -> float:
        """Kill it with SIGKILL; return the instant just before."""
        instant = _boottime()
        self._process.kill()
        return instant

    def end(self) -> None:
        """Let it end by itself if it still runs."""
        self._process.communicate("\n")


def rows(rounds: int) -> Iterator[Row]:
    """Let three candidates of each library follow one another, in turns."""
    handovers: dict[str, list[float]] = {library: [] for library in _LIBRARIES}
    failovers: dict[str, list[float]] = {library: [] for library in _LIBRARIES}
    with (
        LocalEnsemble(tick_time=_TICK) as zookeeper,
        zkelect.connect(zookeeper.hosts, session_timeout=_TIMEOUT, tick_time=_TICK) as session,
    ):
        for number in range(rounds):
            for library in _LIBRARIES:
                onlooker = zkelect.Election(session, f"/bench/{library}-{number}")
                handover, failover = _succeed(library, zookeeper.hosts, onlooker)
                handovers[library].append(handover * 1e3)
                failovers[library].append(failover)
    yield _row("handover: from resigning to the next one's body", "ms", handovers)
    yield _row(
        f"fail-over: from SIGKILL to the next one's body, T = {_TIMEOUT:g} s", "s", failovers
    )


def _row(figure: str, unit: str, times: dict[str, list[float]]) -> Row:
    ours, theirs = (Samples(tuple(times[library])) for library in _LIBRARIES)
    return Row(figure=figure, ours=ours, unit=unit, beside=theirs, beside_what="kazoo's Election")


def _succeed(library: str, hosts: str, onlooker: zkelect.Election) -> tuple[float, float]:
    with ExitStack() as stack:
        first, second, third = (
            _join(stack, library, hosts, onlooker, place) for place in (1, 2, 3)
        )
        first.hear("leads")
        time.sleep(_TIMEOUT / 2)  # for both alike: what begins with standing is over
        resigned = first.leave()
        took_over = second.hear("leads")
        time.sleep(_TIMEOUT / 2)
        killed = second.kill()
        return took_over - resigned, third.hear("leads") - killed


def _join(
    stack: ExitStack, library: str, hosts: str, onlooker: zkelect.Election, place: int
) -> _Contestant:
    contestant = _Contestant(library, hosts, onlooker.path)
    stack.callback(contestant.end)
    while len(onlooker.candidates()) < place:
        time.sleep(0.02)
    return contestant
