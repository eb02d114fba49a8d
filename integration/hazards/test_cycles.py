"""H43 and H44: thousands of campaigns, and candidates that come and go."""

from __future__ import annotations

import gc
import socket
import threading
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest
from election.actor import TICK
from election.waiting import until

import zkelect
from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Campaign
    from kazoo.client import KazooClient

    from zkelect.testing import LocalEnsemble

T = 2.0
boottime = SystemClock().boottime


@pytest.fixture
def connect() -> Iterator[Callable[[str], zkelect.Session]]:
    """Open sessions without a forwarder, which would remember every frame."""
    with ExitStack() as stack:
        yield lambda hosts: stack.enter_context(
            zkelect.connect(hosts, session_timeout=T, tick_time=TICK)
        )


# --- H43: nothing piles up ---------------------------------------------------------------------


@attrs.frozen
class Held:
    """What the process and the server hold at one moment."""

    threads: int
    descriptors: int
    watches: int
    listeners: int
    objects: int

    @classmethod
    def now(cls, server: tuple[str, int], client: KazooClient, *sessions: zkelect.Session) -> Held:
        """Look while all links are up: one that is down holds no socket, and no watch."""
        until(lambda: all(each.connected for each in sessions), "all links are up")
        for _ in range(3):
            gc.collect()
        return cls(
            threads=threading.active_count(),
            descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            watches=watches_of(server),
            listeners=len(client.state_listeners),
            objects=len(gc.get_objects()),
        )


def watches_of(server: tuple[str, int]) -> int:
    """Ask the server how many watches it keeps: ``wchs``."""
    with socket.create_connection(server) as asked:
        asked.sendall(b"wchs")
        told = b"".join(iter(lambda: asked.recv(4096), b"")).decode()
    return int(told.rpartition("Total watches:")[2])


def cycle_leading(session: zkelect.Session, path: str) -> None:
    """Stand, lead, resign; with an election made for it, as a program does for each job."""
    with zkelect.Election(session, path).campaign(timeout=30.0) as leadership:
        leadership.check()


def cycle_waiting(session: zkelect.Session, path: str) -> None:
    """Stand behind somebody, and give up."""
    election = zkelect.Election(session, path)
    election.start()
    while (phase := election.phase) is not zkelect.Phase.WAITING:
        assert phase is not zkelect.Phase.LEADING, "nobody leads before it: the holder was lost"
        threading.Event().wait(0.001)
    assert election.stop(timeout=30.0)


@pytest.mark.timeout(900)  # ten thousand of them take two minutes and more
def test_h43_campaigns_leave_nothing_behind(
    doomed: LocalEnsemble,
    campaign: Callable[..., Campaign],
    connect: Callable[[str], zkelect.Session],
    path: str,
    times: Callable[..., int],
) -> None:
    """kazoo #542. A tenth of the cycles wait behind a leader and give up."""
    cycles = times(1000, 10_000)
    holder, session = connect(doomed.hosts), connect(doomed.hosts)
    behind = f"{path}-behind"
    campaign(zkelect.Election(holder, behind, name="holder")).leadership()
    server = ("127.0.0.1", int(doomed.hosts.rpartition(":")[2]))
    for _ in range(150):  # the history is full by then: it keeps a hundred terms
        cycle_leading(session, path)
        cycle_waiting(session, behind)
    before, began = Held.now(server, session.link.client, session, holder), boottime()
    for number in range(cycles):
        if number % 10:
            cycle_leading(session, path)
        else:
            cycle_waiting(session, behind)
    pace = cycles / (boottime() - began)
    after = Held.now(server, session.link.client, session, holder)
    print(f"{cycles} cycles, {pace:.0f} in a second: {before} -> {after}")
    assert after.threads <= before.threads
    assert after.descriptors <= before.descriptors
    assert after.watches <= before.watches
    assert after.listeners == before.listeners
    assert after.objects - before.objects < cycles / 4


# --- H44: a candidate that flaps -----------------------------------------------------------------


def test_h44_a_flapping_candidate_leads_once_while_others_get_their_turn(
    cast: Callable[..., Actor], path: str
) -> None:
    """It stands again behind, so between two terms of its own there is one of each other."""
    flapper = cast("flapper", stall_timeout=0.05).start()
    others = [cast(name).queue() for name in ("B", "C")]  # one by one: their turns are in order
    for turn in range(1, 6):
        for each in others:
            each.diary.wait("elected", turn)
            each.election.resign()  # a stable one hands over; it stands again by itself
    for each in others:
        each.session.close()
    notes = sorted(
        (note.at, who.name) for who in (flapper, *others) for note in who.diary.all("granted")
    )
    while_others_stood = [name for at, name in notes if at < last_end(others)]
    flaps = [at for at, name in enumerate(while_others_stood) if name == "flapper"]
    assert len(flaps) > 1
    for one, next_one in pairwise(flaps):
        assert next_one - one > 1, f"it led twice in a row: {while_others_stood}"


def last_end(actors: list[Actor]) -> float:
    """The instant from which one of them stood no more."""
    last: list[float] = [each.diary.all("elected")[-1].at for each in actors]
    return min(last)


def test_h44_the_same_candidate_alone_leads_again_soon(
    cast: Callable[..., Actor], measured: Callable[[str, float, float], None]
) -> None:
    a = cast("A", stall_timeout=0.05).start()
    for turn in range(1, 7):
        lost = a.diary.wait("deposed", turn)
        assert lost.reason == "stalled"
        again = a.diary.wait("granted", turn + 1)
        measured("from deposed to leading again", again.at - lost.at, T + 1)
