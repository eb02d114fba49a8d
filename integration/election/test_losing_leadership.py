"""Losing: whatever ends a leadership, its end is known in time, and the fence holds."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

import zkelect
from zkelect.session.clock import SystemClock
from zkelect.stores import SqliteFence
from zkelect.testing import Forwarder, expire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Actor, Campaign, Operator, Process, Sentry
    from kazoo.client import KazooClient

    from zkelect.testing import LocalEnsemble

T = 2.0
LONG = 4.0
boottime = SystemClock().boottime


@pytest.fixture
def fence(tmp_path: Path) -> Callable[[], SqliteFence]:
    """Open the store as another process would: with nothing remembered."""
    return lambda: SqliteFence(tmp_path / "store.db", domain="test")


def write(fence: SqliteFence, claimant: zkelect.Leadership | zkelect.Token) -> None:
    with fence.transaction(claimant) as transaction:
        transaction.execute("create table if not exists log (entry text)")
        transaction.execute("insert into log values ('written')")


# --- H01: somebody closes the session ------------------------------------------------------


def test_h01_an_expired_leader_is_deposed_once_by_the_first_answer_that_says_so(
    cast: Callable[..., Actor], zookeeper: LocalEnsemble
) -> None:
    """kazoo #2, #565."""
    a, b = cast("A", session_timeout=LONG), cast("B")
    first = a.lead()
    b.queue()
    a.forwarder.refuse()  # the server will end the connection; nobody shall tell why, yet
    expire(a.session, hosts=zookeeper.hosts)
    second = b.diary.wait("elected").leadership
    assert first.check() == first.token
    a.forwarder.accept()
    deposed = a.diary.wait("deposed")
    assert (deposed.leadership, deposed.reason) == (first, "expired")
    b.election.stop()
    again = a.diary.wait("elected", 2).leadership
    assert first.token < second.token < again.token
    # The reconnect's answer says it; only then does a new session create a candidate.
    answers = [f.at for f in a.forwarder.log if (f.direction, f.name) == ("replies", "connect")]
    creates = [f.at for f in a.forwarder.log if (f.direction, f.name) == ("requests", "create2")]
    assert answers[1] < deposed.at < creates[-1]
    a.session.close()
    a.diary.wait("deposed", 2)
    a.diary.assert_paired()


def test_h01_the_fence_refuses_every_write_of_a_leader_that_does_not_know_yet(
    cast: Callable[..., Actor], zookeeper: LocalEnsemble, fence: Callable[[], SqliteFence]
) -> None:
    a, b = cast("A", session_timeout=LONG), cast("B")
    ours, theirs = fence(), fence()
    stale = a.lead()
    ours.claim(stale)
    write(ours, stale)
    b.queue()
    a.forwarder.cut()
    expire(a.session, hosts=zookeeper.hosts)
    successor = b.diary.wait("elected").leadership
    theirs.claim(successor)
    assert stale.check() == stale.token  # what a lease cannot know
    for store, claimant in ((fence(), stale.token), (ours, stale.token), (ours, stale)):
        with pytest.raises(zkelect.Fenced) as refused:
            write(store, claimant)
        assert refused.value.token == stale.token
        assert refused.value.mark == successor.token > stale.token
    with pytest.raises(zkelect.LeadershipLost, match="fenced"):
        write(ours, stale)
    write(theirs, successor)


# --- H02: the process stands still -----------------------------------------------------------


def test_h02_a_leader_that_was_stopped_knows_at_its_first_check(
    cast: Callable[..., Actor],
    spawn: Callable[..., Process],
    fence: Callable[[], SqliteFence],
    tmp_path: Path,
    zookeeper: LocalEnsemble,
) -> None:
    """kazoo #241."""
    with Forwarder(zookeeper.hosts) as link:
        a, b = spawn("A", f"--fence={tmp_path / 'store.db'}", hosts=link.hosts), cast("B")
        token = a.wait("elected")["token"]
        assert "error" not in a.does("claim")
        assert "error" not in a.does("write", "first")
        b.queue()
        a.order("write-late", "stale")
        a.wait("checked")
        link.cut()  # from here on nobody can tell it anything
        a.signal(signal.SIGSTOP)
        stopped = boottime()
        successor = b.diary.wait("elected").leadership
        fence().claim(successor)
        assert not successor.wait_lost(stopped + 3 * T - boottime())
        continued = boottime()
        a.signal(signal.SIGCONT)
        refused = a.wait("refused")
        late = a.wait("write-late")
    assert refused["passed"] < continued
    assert (refused["error"], refused["fields"]["reason"]) == ("LeadershipLost", "lapsed")
    assert late["error"] == "Fenced"
    assert late["fields"]["token"] == token
    assert late["fields"]["mark"] == str(successor.token) > token


# --- H03: all servers stop -----------------------------------------------------------------


def harm(server: LocalEnsemble, how: str) -> None:
    if how == "killed":
        server.servers[0].kill()
    else:
        server.servers[0].pause()


@pytest.mark.parametrize("how", ["killed", "paused"])
def test_h03_without_servers_a_leader_ends_at_its_own_deadline(
    how: str,
    doomed: LocalEnsemble,
    cast: Callable[..., Actor],
    watch: type[Sentry],
    measured: Callable[[str, float, float], None],
) -> None:
    a = cast("A", server=doomed.hosts)
    sentry = watch(a.lead())
    harm(doomed, how)
    deposed = a.diary.wait("deposed")
    sentry.relieve()
    assert deposed.reason == "lapsed"
    assert sentry.passed < sentry.deadline <= deposed.at
    measured("from the deadline to deposed", deposed.at - sentry.deadline, 0.05)
    with pytest.raises(zkelect.LeadershipLost, match="lapsed"):
        sentry.leadership.check()
    assert sentry.leadership.remaining() == 0.0


@pytest.mark.parametrize("how", ["killed", "paused"])
def test_h03_without_servers_every_call_ends_within_its_timeout(
    how: str,
    doomed: LocalEnsemble,
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    measured: Callable[[str, float, float], None],
    eventually: Callable[[Callable[[], object], str], None],
    path: str,
) -> None:
    """patroni #1981: requests queue while suspended."""
    a, b = cast("A", server=doomed.hosts), cast("B", server=doomed.hosts)
    leading = campaign(a.election)
    leadership = leading.leadership()
    waiting = campaign(b.election, 2 * T)
    eventually(lambda: b.election.phase is zkelect.Phase.WAITING, "B waits")

    def call(what: str, promised: float, act: Callable[[], object]) -> None:
        began = boottime()
        with suppress(zkelect.Unreachable, zkelect.LeadershipLost):
            act()
        measured(what, boottime() - began, promised)

    harm(doomed, how)
    call("wait_lost()", T, leadership.wait_lost)
    call("check()", 0.1, leadership.check)
    call("leader(0.2)", 0.2, lambda: a.election.leader(timeout=0.2))
    call("candidates(0.2)", 0.2, lambda: a.election.candidates(timeout=0.2))
    call("leave the block", T / 5, leading.leave)
    call("the rest of campaign(4.0)", 2 * T, lambda: waiting.elected.result(20 * T))
    assert isinstance(waiting.elected.exception(), zkelect.NotElected)
    call("campaign(0.2)", 0.2, lambda: b.election.campaign(0.2).__enter__())
    call("run(0.2)", 0.2, lambda: b.election.run(lambda _: None, timeout=0.2))
    call("resign()", 0.1, b.election.resign)
    call("start()", 0.1, b.election.start)
    call("stop(0.2)", 0.2, lambda: b.election.stop(timeout=0.2))
    call("Election()", 0.1, lambda: zkelect.Election(a.session, path))
    call("connect(0.2)", 0.2, lambda: zkelect.connect(doomed.hosts, timeout=0.2))
    call("close(0.2)", 0.2, lambda: a.session.close(timeout=0.2))
    call("close()", T / 5, b.session.close)


# --- H06: a dead link under a busy application -----------------------------------------------


@contextmanager
def busy(send: Callable[[], object]) -> Iterator[None]:
    """Send requests all the time."""
    enough = threading.Event()

    def work() -> None:
        while not enough.wait(0.01):
            with suppress(zkelect.Unreachable):
                send()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        enough.set()
        worker.join()


@pytest.mark.parametrize("run", range(3))
def test_h06_requests_of_the_application_do_not_hide_a_dead_link(
    run: int,
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    adopted: Callable[..., tuple[KazooClient, zkelect.Session]],
    watch: type[Sentry],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    """kazoo 2.11 counts what it sends as a sign of life and stays CONNECTED for 20 s."""
    with Forwarder(zookeeper.hosts) as link:
        client, session = adopted(link.hosts, tick_time=0.2)
        election = zkelect.Election(session, path, name="A")
        sentry = watch(campaign(election).leadership())
        b = cast("B").queue()
        with busy(lambda: client.get_async("/")):
            link.cut()
            successor = b.diary.wait("granted")
            sentry.relieve()
            assert client.connected  # kazoo itself has noticed nothing
        assert sentry.leadership.reason == "lapsed"
        assert sentry.passed < sentry.deadline < successor.at


def test_h06_our_own_questions_do_not_hide_a_dead_link(
    cast: Callable[..., Actor], watch: type[Sentry]
) -> None:
    a, b = cast("A"), cast("B")
    sentry = watch(a.lead())
    b.queue()
    with busy(lambda: a.election.candidates(timeout=0.1)):
        a.forwarder.cut()
        cut = boottime()
        successor = b.diary.wait("granted")
        sentry.relieve()
    assert sentry.leadership.reason == "lapsed"
    assert sentry.passed < sentry.deadline < successor.at
    # The watchdog gives up the link after T/5 without an answer, and dials again.
    assert [f for f in a.forwarder.log if f.name == "connect" and f.at > cut]


# --- H08, H09: an operator deletes a candidate ------------------------------------------------


def test_h08_an_evicted_leader_is_deposed_by_its_watch_and_stands_again_behind(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    """CURATOR-171."""
    a, b = cast("A", session_timeout=LONG), cast("B")
    first = a.lead()
    b.queue()
    a.forwarder.cut("requests")  # no probe can tell: only the watch
    operator.delete(path, first.node)
    deposed = a.diary.wait("deposed")
    second = b.diary.wait("elected").leadership
    assert (deposed.leadership, deposed.reason) == (first, "evicted")
    assert second.token > first.token
    a.forwarder.heal()
    assert a.forwarder.wait_for(lambda: len(operator.nodes(path)) == 2)
    assert [candidate.name for candidate in b.election.candidates()] == ["B", "A"]
    b.election.stop()
    assert a.diary.wait("elected", 2).leadership.token > second.token


def test_h08_while_an_evicted_leader_is_cut_off_only_the_fence_holds(
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    watch: type[Sentry],
    fence: Callable[[], SqliteFence],
) -> None:
    a, b = cast("A", session_timeout=LONG), cast("B")
    ours, theirs = fence(), fence()
    stale = a.lead()
    ours.claim(stale)
    b.queue()
    sentry = watch(stale)
    a.forwarder.cut()
    operator.delete(path, stale.node)
    successor = b.diary.wait("elected").leadership
    theirs.claim(successor)
    assert stale.check() == stale.token
    with pytest.raises(zkelect.Fenced) as refused:
        write(ours, stale.token)
    assert refused.value.mark == successor.token
    deposed = a.diary.wait("deposed")
    sentry.relieve()
    assert deposed.reason == "lapsed"
    assert sentry.passed < sentry.deadline <= deposed.at


def test_h09_an_evicted_waiter_stands_again_and_disturbs_nobody(
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    measured: Callable[[str, float, float], None],
) -> None:
    a, b, c = (cast(name, session_timeout=LONG) for name in "ABC")  # a re-read comes after 3 T
    leadership = a.lead()
    b.queue()
    c.queue()
    before = operator.nodes(path)
    creates = {each: each.forwarder.requests["create2"] for each in (a, c)}
    operator.delete(path, before[1])
    deleted = boottime()
    assert b.forwarder.wait_for(lambda: len(operator.nodes(path)) == 3)
    measured("from the deletion to a new place", boottime() - deleted, 1.0)
    assert operator.nodes(path)[:2] == [before[0], before[2]]
    assert [candidate.name for candidate in a.election.candidates()] == ["A", "C", "B"]
    assert leadership.check() == leadership.token
    assert {each: each.forwarder.requests["create2"] for each in (a, c)} == creates
    a.election.stop()
    assert c.diary.wait("elected").leadership.node == before[2]
    for each in (a, b, c):
        assert [note.what for note in each.diary.all("deposed")] == ["deposed"] * (each is a)
