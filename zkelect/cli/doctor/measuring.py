"""What a session alone tells: how quick the servers are, their clock, how many of them vote."""

from __future__ import annotations

import re
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

from zkelect.cli.doctor.facts import Spread
from zkelect.session.asking import ask
from zkelect.session.gateway import Check, Failure
from zkelect.session.uuids import new_uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.session.session import Session

__all__ = ["ROUNDS", "compare_clocks", "count_voters", "read_voters", "time_commits", "time_reads"]

ROUNDS: Final = 20
"""So many requests of each kind are timed."""

_CONFIGURATION: Final = "/zookeeper/config"
_VOTER: Final = re.compile(r"^server\.\d+=(?!.*:observer)", re.MULTILINE)


def time_reads(session: Session, timeout: float) -> Spread:
    """Time requests that one server answers by itself, one after the other.

    :param timeout: seconds to wait for each answer.
    """
    return _time(session, lambda g, done: g.details("/", done), timeout)


def time_commits(session: Session, timeout: float) -> Spread:
    """Time transactions of the quorum that change nothing, as the probes of a lease are.

    One that is refused counts as well: the quorum has agreed on that, too.
    """
    return _time(session, lambda g, done: g.multi([Check(path="/")], done), timeout)


def _time(session: Session, send: Callable[[Any, Any], None], timeout: float) -> Spread:
    times = []
    for _ in range(ROUNDS):
        began = session.now()
        ask(session, send, timeout)
        times.append(session.now() - began)
    return Spread(median=statistics.median(times), worst=max(times), count=len(times))


def count_voters(session: Session, timeout: float) -> int | None:
    """Return how many servers vote, None when that may not be read or is not said.

    :param session: without a chroot.
    """
    answer: Any = ask(session, lambda g, done: g.get(_CONFIGURATION, done), timeout)
    return None if isinstance(answer, Failure) else read_voters(answer[0])


def read_voters(configuration: bytes) -> int | None:
    """Return how many servers vote by that configuration, None when it names none.

    :param configuration: the data of ``/zookeeper/config``; it is empty on a server that stands
        alone (ZooKeeper Dynamic Reconfiguration, "Retrieving the current dynamic configuration").
    """
    return len(_VOTER.findall(configuration.decode("utf-8", "replace"))) or None


def compare_clocks(session: Session, folder: str, timeout: float) -> tuple[float, float] | None:
    """Return how far this host's wall clock is ahead of the servers', and how wrong that may be.

    A znode carries the time at which the ensemble's leader got the request to make it.

    :param folder: where an ephemeral znode is made; it goes with the session.
    :returns: None when that is not allowed.
    """
    path = f"{folder}/zkelect-doctor-{new_uuid()}-"
    before, began = time.time(), session.now()
    answer: Any = ask(session, lambda g, done: g.create_candidate(path, b"", done), timeout)
    took = session.now() - began
    if isinstance(answer, Failure):
        return None
    return before + took / 2 - answer[1].created, took / 2
