"""How long nobody leads: when a leader resigns, and when one is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

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


@attrs.frozen(kw_only=True)
class _Gaps:
    """Seconds in which nobody led.

    :ivar handover: the leader resigned. :ivar failover: its successor was killed.
    :ivar third: that one's successor resigned, so that one leads who was far back a moment ago.
    """

    handover: float
    failover: float
    third: float


_FIGURES: Final = {
    "handover": "handover: from resigning to the next one's body",
    "failover": f"fail-over: from SIGKILL to the next one's body, T = {_TIMEOUT:g} s",
    "third": "handover that is the third change in a row",
}

_NOTES: Final = {
    "failover": "T runs from the last sign of life: probes every T/15 here, pings every T/3 there",
    "third": "it was not among the first two in line when it joined: its lease is not warm",
}


def rows(rounds: int) -> Iterator[Row]:
    """Let four candidates of each library follow one another, in turns."""
    gaps: dict[str, list[_Gaps]] = {library: [] for library in _LIBRARIES}
    with (
        LocalEnsemble(tick_time=_TICK) as zookeeper,
        zkelect.connect(zookeeper.hosts, session_timeout=_TIMEOUT, tick_time=_TICK) as session,
    ):
        for number in range(rounds):
            for library in _LIBRARIES:
                onlooker = zkelect.Election(session, f"/bench/{library}-{number}")
                gaps[library].append(_succeed(library, zookeeper.hosts, onlooker))
    for which, figure in _FIGURES.items():
        ours, theirs = (
            Samples(tuple(getattr(gap, which) * 1e3 for gap in gaps[library]))
            for library in _LIBRARIES
        )
        yield Row(
            figure=figure,
            ours=ours,
            unit="ms",
            beside=theirs,
            beside_what="kazoo's Election",
            note=_NOTES.get(which, ""),
        )


def _succeed(library: str, hosts: str, onlooker: zkelect.Election) -> _Gaps:
    with ExitStack() as stack:
        first, second, third, fourth = (
            _join(stack, library, hosts, onlooker, place) for place in (1, 2, 3, 4)
        )
        first.hear("leads")
        _settle()
        resigned = first.leave()
        handover = second.hear("leads") - resigned
        _settle()
        killed = second.kill()
        failover = third.hear("leads") - killed
        _settle()
        resigned = third.leave()
        return _Gaps(handover=handover, failover=failover, third=fourth.hear("leads") - resigned)


def _settle() -> None:
    """Let what begins with leading be over, for both libraries alike."""
    time.sleep(_TIMEOUT / 4)


def _join(
    stack: ExitStack, library: str, hosts: str, onlooker: zkelect.Election, place: int
) -> _Contestant:
    contestant = _Contestant(library, hosts, onlooker.path)
    stack.callback(contestant.end)
    while len(onlooker.candidates()) < place:
        time.sleep(0.02)
    return contestant
