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

T: Final = 2.0
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


def leads(who: Actor) -> bool:
    told = who.diary.all("elected")
    return bool(told) and told[-1].leadership.reason is None


def waits(who: Actor) -> bool:
    return who.election.phase is Phase.WAITING


def cut_again(actors: tuple[Actor, Actor]) -> Cut:
    """Cut off whoever leads, wait for its successor, and let it come back."""
    until(lambda: any(map(leads, actors)) and any(map(waits, actors)), "one leads, one waits")
    a, b = actors if leads(actors[0]) else actors[::-1]
    term = a.diary.all("elected")[-1].leadership
    sentry = Sentry(term)
    a.forwarder.cut()
    began: list[float] = []

    def succeeded() -> bool:
        began[:] = [n.at for n in b.diary.all("granted") if n.leadership.token > term.token]
        return bool(began)

    until(succeeded, f"{b.name} follows {a.name}")
    sentry.relieve()
    a.forwarder.heal()
    return Cut(sentry.passed, sentry.deadline, began[0])


def cut_pair(server: str, path: str, runs: int) -> list[Cut]:
    with ExitStack() as stack:
        a, b = (stack.enter_context(Actor(server, path, name, session_timeout=T)) for name in "AB")
        a.lead()
        b.queue()
        return [cut_again((a, b)) for _ in range(runs)]


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
