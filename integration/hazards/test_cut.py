"""H05: the link is cut, and nobody is told: the leader has ended before the next one begins."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
from election.actor import Actor
from election.diary import Sentry
from election.waiting import until

from zkelect import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.testing import LocalEnsemble

T: Final = 1.2
PAIRS: Final = 5


@attrs.frozen
class Cut:
    """One run, instants of the boot clock.

    :ivar passed: the last check of the old leader that passed had begun then.
    :ivar deadline: its last one. :ivar began: the successor's term.
    """

    passed: float
    deadline: float
    began: float


def cut_again(actors: tuple[Actor, Actor], run: int) -> Cut:
    """Cut the present leader off, wait for its successor, and let it come back behind."""
    a, b = actors if run % 2 == 0 else actors[::-1]
    terms, grants, losses = (
        len(who.diary.all(what)) for who, what in ((a, "elected"), (b, "granted"), (a, "deposed"))
    )
    sentry = Sentry(a.diary.wait("elected", max(terms, 1)).leadership)
    a.forwarder.cut()
    successor = b.diary.wait("granted", grants + 1)
    sentry.relieve()
    assert a.diary.wait("deposed", losses + 1).reason == "lapsed"
    a.forwarder.heal()
    b.diary.wait("elected", grants + 1)
    until(lambda: a.election.phase is Phase.WAITING, f"{a.name} waits")
    return Cut(sentry.passed, sentry.deadline, successor.at)


def cut_pair(server: str, path: str, runs: int) -> list[Cut]:
    with ExitStack() as stack:
        a, b = (stack.enter_context(Actor(server, path, name, session_timeout=T)) for name in "AB")
        a.lead()
        b.queue()
        return [cut_again((a, b), run) for run in range(runs)]


def test_h05_a_leader_that_is_cut_off_has_ended_before_its_successor_begins(
    zookeeper: LocalEnsemble, path: str, times: Callable[..., int]
) -> None:
    """CURATOR-460. Five pairs at a time, each with its own links."""
    runs = times(4, 20)
    with ThreadPoolExecutor(PAIRS) as pool:
        begun = [
            pool.submit(partial(cut_pair, zookeeper.hosts, f"{path}-{pair}", runs))
            for pair in range(PAIRS)
        ]
        cuts = [cut for pair in begun for cut in pair.result()]
    assert len(cuts) == PAIRS * runs
    margins = sorted(cut.began - cut.deadline for cut in cuts)
    quartiles = statistics.quantiles(margins, n=100)
    told = ", ".join(f"p{at} {quartiles[at - 1]:.3f} s" for at in (1, 10, 50, 90, 99))
    print(f"cut {len(cuts)} times, from the deadline to the successor: {told}")
    for cut in cuts:
        assert cut.passed < cut.deadline < cut.began
