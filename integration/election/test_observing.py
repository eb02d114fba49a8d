"""Who leads, as the clients of a leader see it."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN, until
from kazoo.security import make_acl

import zkelect
from zkelect import stores
from zkelect.testing import Forwarder, LocalEnsemble

NOBODY = [make_acl("digest", "nobody:" + "x" * 28, all=True)]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Operator


@pytest.fixture
def session(zookeeper: LocalEnsemble) -> Iterator[zkelect.Session]:
    with zkelect.connect(zookeeper.hosts, session_timeout=2.0, tick_time=0.2) as opened:
        yield opened


@pytest.fixture
def election(session: zkelect.Session, path: str) -> zkelect.Election:
    """A client's: it never stands."""
    return zkelect.Election(session, path, name="client")


class Follower(threading.Thread):
    """Loops over the changes in a thread, as a program does."""

    def __init__(self, election: zkelect.Election) -> None:
        super().__init__(daemon=True)
        self.told: list[str | None] = []
        self.error: zkelect.ZkelectError | None = None
        self.changes = election.observe()

    def run(self) -> None:
        try:
            for leader in self.changes:
                self.told.append(None if leader is None else leader.name)
        except zkelect.ZkelectError as error:
            self.error = error

    def wait(self, *names: str | None) -> None:
        """Wait until these were told, in this order, the last one last."""
        until(lambda: self.told[-1:] == list(names[-1:]), f"{names} are told, not {self.told}")
        rest = iter(self.told)
        assert all(name in rest for name in names), (names, self.told)


@pytest.fixture
def follow(election: zkelect.Election) -> Iterator[Callable[[], Follower]]:
    with ExitStack() as stack:

        def start() -> Follower:
            follower = Follower(election)
            stack.enter_context(follower.changes)
            follower.start()
            return follower

        yield start


def test_a_loop_is_told_of_each_leader_and_of_nobody(
    cast: Callable[..., Actor], follow: Callable[[], Follower]
) -> None:
    a = cast("A")
    a.lead()
    b = cast("B").queue()
    follower = follow()
    follower.wait("A")
    a.election.stop()
    follower.wait("A", None, "B")
    b.election.stop()
    follower.wait("A", None, "B", None)
    follower.changes.close()
    follower.join(WITHIN)
    assert not follower.is_alive()
    assert follower.error is None


def test_a_killed_leader_is_nobody_and_then_its_successor(
    cast: Callable[..., Actor], follow: Callable[[], Follower]
) -> None:
    a = cast("A")
    a.lead()
    cast("B").queue()
    follower = follow()
    follower.wait("A")
    a.forwarder.cut()  # for the others the same as a machine that is gone
    follower.wait("A", None, "B")


def test_the_loop_survives_a_session_that_expires(
    session: zkelect.Session, cast: Callable[..., Actor], follow: Callable[[], Follower]
) -> None:
    a = cast("A")
    a.lead()
    follower = follow()
    follower.wait("A")
    zkelect.testing.expire(session)
    cast("B").queue()
    a.election.stop()
    follower.wait("A", "B")


def test_the_loop_ends_with_the_session(
    session: zkelect.Session, cast: Callable[..., Actor], follow: Callable[[], Follower]
) -> None:
    cast("A").lead()
    follower = follow()
    follower.wait("A")
    session.close()
    follower.join(WITHIN)
    assert isinstance(follower.error, zkelect.SessionClosed)


def test_a_path_where_nobody_ever_stood_is_refused(election: zkelect.Election) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="stood for"), election.observe():
        pass


def test_who_may_not_read_is_told(
    cast: Callable[..., Actor],
    election: zkelect.Election,
    operate: Callable[..., Operator],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    cast("A").lead()
    operator = operate(zookeeper.hosts)
    operator.kazoo.set_acls(f"{path}.zkelect/term", NOBODY)
    with pytest.raises(zkelect.PermissionDenied, match="term"), election.observe():
        pass


def test_a_change_can_be_waited_for(cast: Callable[..., Actor], election: zkelect.Election) -> None:
    a = cast("A")
    a.lead()
    with election.observe() as changes:
        while (leader := changes.leader) is None or leader.phase != "serving":
            assert changes.wait(WITHIN)  # its term is written twice: when it prepares, and serves
        assert (leader.name, changes.fresh, changes.age) == ("A", True, 0.0)
        assert not changes.wait(timeout=0.0)
        a.election.stop()
        assert changes.wait(timeout=WITHIN)
        assert changes.leader is None


def test_a_change_of_leader_costs_each_of_a_thousand_observers_two_requests(path: str) -> None:
    """Whoever joins meanwhile costs them none."""
    with ExitStack() as stack:
        server = stack.enter_context(LocalEnsemble(tick_time=0.5, max_session_timeout=30.0))

        def connect(hosts: str) -> zkelect.Session:
            opened = zkelect.connect(hosts, session_timeout=30.0, tick_time=0.5, timeout=WITHIN)
            return stack.enter_context(opened)

        def stand(name: str) -> zkelect.Election:
            election = zkelect.Election(connect(server.hosts), path, name=name)
            election.start()
            until(lambda: election.phase in (zkelect.Phase.LEADING, zkelect.Phase.WAITING), name)
            return election

        first = stand("A")
        forwarders = [stack.enter_context(Forwarder(server.hosts)) for _ in range(4)]
        observers = []
        for forwarder in forwarders:
            client = zkelect.Election(connect(forwarder.hosts), path)
            observers += [stack.enter_context(client.observe(WITHIN)) for _ in range(250)]
        before = sum(asked(forwarder) for forwarder in forwarders)
        for name in ("B", "C", "D"):
            stand(name)
        first.stop()
        until(lambda: {leader_of(each) for each in observers} == {"B"}, "all have heard of B")
        assert sum(asked(forwarder) for forwarder in forwarders) - before <= 2 * len(observers)


def asked(forwarder: Forwarder) -> int:
    """Return how many requests have passed; pings are none."""
    return sum(count for name, count in forwarder.requests.items() if name != "ping")


def leader_of(changes: zkelect.Observation) -> str | None:
    leader = changes.leader
    return None if leader is None else leader.name


# --- leader(max_age=), resolve() -------------------------------------------------------------


def test_an_answer_may_be_as_old_as_was_said(
    cast: Callable[..., Actor], election: zkelect.Election
) -> None:
    a = cast("A")
    a.lead()
    first = election.leader()
    a.election.stop()
    assert election.leader(max_age=3600.0) == first
    assert election.leader() is None
    assert election.leader(max_age=3600.0) is None


class Service:
    """Two processes behind one name: each knows the fence, and does what its leader may."""

    def __init__(self, actors: dict[str, Actor]) -> None:
        self.fence = stores.MemoryFence(domain="billing")
        self.calls: list[str] = []
        self._actors = actors

    def call(self, leader: zkelect.Candidate) -> str:
        """What a client's request does at the process that the client took for the leader."""
        self.calls.append(leader.name)
        actor = self._actors[leader.name]
        leadership = actor.diary.all("elected")[-1].leadership
        self.fence.claim(leadership.token)
        with self.fence.transaction(leadership.token) as log:
            log.append("done")
        return leader.name


def test_h48_a_deposed_leader_refuses_and_the_call_is_done_once_by_its_successor(
    cast: Callable[..., Actor], election: zkelect.Election
) -> None:
    actors = {name: cast(name) for name in ("A", "B")}
    actors["A"].lead()
    actors["B"].queue()
    service = Service(actors)
    assert election.resolve(service.call) == "A"
    actors["A"].election.stop()
    successor = actors["B"].diary.wait("elected").leadership
    service.fence.claim(successor)
    assert election.resolve(service.call, max_age=3600.0) == "B"
    assert service.calls == ["A", "A", "B"]
    assert [str(token) for token, _ in service.fence.log][1:] == [str(successor.token)]


def test_h48_the_same_leader_is_not_called_twice(
    cast: Callable[..., Actor], election: zkelect.Election
) -> None:
    cast("A").lead()
    calls: list[str] = []

    def reset(leader: zkelect.Candidate) -> None:
        calls.append(leader.name)
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        election.resolve(reset)
    assert calls == ["A"]


def test_what_is_no_sign_of_a_deposed_leader_is_raised_at_once(
    cast: Callable[..., Actor], election: zkelect.Election
) -> None:
    cast("A").lead()

    def fail(leader: zkelect.Candidate) -> None:
        raise KeyError(leader.name)

    with pytest.raises(KeyError):
        election.resolve(fail)


def test_nobody_leads_is_an_error_of_its_own(election: zkelect.Election) -> None:
    with pytest.raises(zkelect.NobodyLeads, match="nobody leads"):
        election.resolve(lambda leader: leader)
