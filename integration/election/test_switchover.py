"""H49: an operator lets another candidate lead."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from election.waiting import WITHIN, boottime, until
from kazoo.exceptions import CancelledError, NoNodeError

import zkelect
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Campaign, Operator, Process

    from zkelect.testing import LocalEnsemble

T = 2.0
DEAF = "00000000000080008000000000000000"
"""The uuid of a candidate that looks like one of ours, and never steps back."""

Page = dict[str, Any]


class Switchover(threading.Thread):
    """One that is asked for on a thread of its own.

    :ivar outcome: the new leader, or what it raised.
    """

    def __init__(self, election: zkelect.Election, to: str, **options: Any) -> None:
        super().__init__(daemon=True)
        self.outcome: Future[zkelect.Candidate] = Future()
        self._ask = lambda: election.switchover(to, **options)
        self.start()

    def run(self) -> None:
        try:
            self.outcome.set_result(self._ask())
        except BaseException as error:  # noqa: BLE001  # the test looks at it
            self.outcome.set_exception(error)

    def reason(self) -> str:
        """Wait until it has failed; return why."""
        error = self.outcome.exception(WITHIN)
        assert isinstance(error, zkelect.SwitchoverFailed), error
        return error.reason


class Contender(threading.Thread):
    """Waits for a kazoo Lock."""

    def __init__(self, lock: Any) -> None:
        super().__init__(daemon=True)
        self._lock = lock
        self.start()

    def run(self) -> None:
        with suppress(CancelledError):
            self._lock.acquire()

    def leave(self) -> None:
        self._lock.cancel()
        self.join(WITHIN)


@attrs.frozen
class Stuck:
    """A switchover whose leader waits for a candidate that does not step back."""

    leader: Actor
    target: Actor
    deaf: str
    switchover: Switchover


@pytest.fixture
def page(operator: Operator, path: str) -> Callable[[], Page]:
    """Read the page of the switchover."""

    def read() -> Page:
        try:
            found: Page = json.loads(operator.kazoo.get(f"{path}.zkelect/switchover")[0])
        except NoNodeError:
            return {}
        return found

    return read


@pytest.fixture
def queue(cast: Callable[..., Actor]) -> Callable[..., list[Actor]]:
    """Let candidates stand one after the other; the first leads."""

    def stand(*names: str) -> list[Actor]:
        actors = [cast(name) for name in names]
        actors[0].lead()
        for actor in actors[1:]:
            actor.queue()
        return actors

    return stand


@pytest.fixture
def blocked(cast: Callable[..., Actor], operator: Operator, path: str) -> tuple[Actor, Actor, str]:
    """A leader, a candidate that waits, and between them one that does not step back."""
    leader = cast("a")
    leader.lead()
    deaf = operator.stand(path, uuid=DEAF)
    return leader, cast("c").queue(), deaf


@pytest.fixture
def stuck(blocked: tuple[Actor, Actor, str], page: Callable[[], Page]) -> Callable[..., Stuck]:
    """Begin a switchover that does not get on."""

    def begin(**options: Any) -> Stuck:
        leader, target, deaf = blocked
        switchover = Switchover(target.election, "c", **{"timeout": WITHIN, **options})
        until(lambda: page().get("state") == "driven", "the leader drives it")
        return Stuck(leader, target, deaf, switchover)

    return begin


# --- how it goes -------------------------------------------------------------------------------


def test_h49_the_last_in_line_leads_and_tokens_rise(queue: Callable[..., list[Actor]]) -> None:
    """20 switchovers, each to the last in the queue: all between step back each time."""
    actors = {actor.name: actor for actor in queue(*"abcd")}
    terms = [actors["a"].diary.wait("elected").leadership]
    for asker in [*actors.values()] * 5:
        target = asker.election.candidates()[-1].name
        leader = asker.election.switchover(target)
        told = len([1 for term in terms if term.name == target]) + 1
        terms.append(actors[target].diary.wait("elected", told).leadership)
        assert (leader.name, leader.token) == (target, terms[-1].token)
    tokens = [term.token for term in terms]
    assert tokens == sorted(tokens)
    for term in terms[:-1]:
        assert term.wait_lost(WITHIN)
        assert term.reason == "switched-over"


def test_the_page_keeps_who_asked_and_why(
    queue: Callable[..., list[Actor]], page: Callable[[], Page], operator: Operator, path: str
) -> None:
    a, b = queue("a", "b")
    assert a.election.switchover("b", by="ops@here", why="a new kernel").name == "b"
    kept = page()
    assert (kept["by"], kept["why"], kept["name"]) == ("ops@here", "a new kernel", "b")
    assert (kept["state"], kept["reason"]) == ("done", "")
    until(lambda: operator.terms(path), "the end of the term is written")
    assert operator.terms(path)[0]["reason"] == "switched-over"
    assert b.diary.wait("elected").leadership.check() == page_token(b)


def page_token(actor: Actor) -> zkelect.Token:
    leader = actor.election.leader()
    assert leader is not None
    assert leader.token is not None
    return leader.token


def test_of_several_with_one_name_the_first_leads_and_a_znode_names_any(
    queue: Callable[..., list[Actor]],
) -> None:
    a, first, second = queue("a", "b", "b")
    assert a.election.switchover("b").token == first.diary.wait("elected").leadership.token
    node = second.election.candidates()[1].node
    assert a.election.switchover(node).token == second.diary.wait("elected").leadership.token


def test_who_leads_already_is_returned(
    queue: Callable[..., list[Actor]], page: Callable[[], Page]
) -> None:
    a, b = queue("a", "b")
    until(b.election.leader, "a's term is written")
    leader = b.election.switchover("a")
    assert leader.token == a.diary.wait("elected").leadership.token
    assert page() == {}


def test_a_leader_may_ask_for_it_in_its_own_block(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign]
) -> None:
    """Its body has not returned: it is waited for as long as its lease would have lasted."""
    a = cast("a")
    leading = campaign(a.election)
    leadership = leading.leadership()
    b = cast("b").queue()
    assert a.election.switchover("b").name == "b"
    assert leadership.reason == "switched-over"
    assert b.diary.wait("elected").at >= leadership.deadline
    with pytest.raises(zkelect.LeadershipLost):
        leadership.check()


def test_a_program_that_does_not_stand_may_ask(
    queue: Callable[..., list[Actor]], zookeeper: LocalEnsemble, path: str
) -> None:
    queue("a", "b")
    with zkelect.connect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
        assert zkelect.Election(session, path).switchover("b").name == "b"


def test_it_is_asked_once_also_when_the_answer_is_lost(
    queue: Callable[..., list[Actor]], zookeeper: LocalEnsemble, path: str
) -> None:
    a, _, c = queue("a", "b", "c")
    with (
        FaultProxy(zookeeper.hosts) as proxy,
        zkelect.connect(proxy.hosts, session_timeout=T, tick_time=0.2) as session,
    ):
        proxy.drop_reply("multi")
        leader = zkelect.Election(session, path).switchover("c")
    assert leader.token == c.diary.wait("elected").leadership.token
    assert len(a.diary.all("deposed")) == 1


def test_from_asyncio(
    queue: Callable[..., list[Actor]], zookeeper: LocalEnsemble, path: str
) -> None:
    queue("a", "b")

    async def main() -> zkelect.Candidate:
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            return await zkelect.AsyncElection(session, path).switchover("b", why="to try it")

    assert asyncio.run(asyncio.wait_for(main(), WITHIN)).name == "b"


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("behind", [False, True], ids=["ahead", "behind"])
def test_h49_with_a_peer_of_another_library_it_is_refused_and_says_why(
    cast: Callable[..., Actor], operator: Operator, path: str, *, behind: bool
) -> None:
    """A contender of kazoo's Lock waits for its turn, and never gives its place away."""
    a = cast("a")
    leadership = a.lead()
    lock = operator.kazoo.Lock(path, "old-1")
    if behind:
        cast("c").queue()
    standing = len(operator.nodes(path))
    contender = Contender(lock)
    until(lambda: len(operator.nodes(path)) > standing, "the contender stands")
    if not behind:
        cast("c").queue()
    with pytest.raises(zkelect.ForeignCandidate, match="does not step back") as caught:
        a.election.switchover("c")
    assert caught.value.node in operator.nodes(path)
    assert leadership.check() == leadership.token
    contender.leave()


def test_h49_while_a_peer_of_another_library_leads_it_is_refused(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    with operator.kazoo.Lock(path, "old-1"):
        b = cast("b").queue()
        with pytest.raises(zkelect.ForeignCandidate):
            b.election.switchover("b")


def test_a_name_that_nobody_bears_is_refused_with_those_who_stand(
    queue: Callable[..., list[Actor]],
) -> None:
    a, _ = queue("a", "b")
    until(a.election.leader, "a's term is written")
    with pytest.raises(zkelect.NotStanding, match="'x' does not stand; 'a', 'b' do") as caught:
        a.election.switchover("x")
    assert caught.value.standing == ("a", "b")


def test_while_nobody_leads_it_is_refused(cast: Callable[..., Actor]) -> None:
    with pytest.raises(zkelect.NobodyLeads):
        cast("a").election.switchover("a")


def test_while_paused_it_is_refused(queue: Callable[..., list[Actor]]) -> None:
    a, b = queue("a", "b")
    until(a.election.leader, "a's term is written")
    a.election.pause("freeze", by="K")
    with pytest.raises(zkelect.ElectionPaused, match="freeze"):
        b.election.switchover("b")
    a.election.resume()


@pytest.mark.parametrize(
    ("to", "options"),
    [(7, {}), ("b", {"timeout": -1.0}), ("b", {"timeout": None}), ("b", {"why": "x" * 9000})],
)
def test_what_cannot_be_meant_is_refused(
    cast: Callable[..., Actor], to: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(zkelect.InvalidArgument):
        cast("a").election.switchover(to, **options)


def test_of_two_at_once_the_second_is_told_of_the_first(stuck: Callable[..., Stuck]) -> None:
    first = stuck(by="ops@here", why="a new kernel")
    with pytest.raises(zkelect.SwitchoverInProgress, match="a new kernel") as caught:
        first.leader.election.switchover("c")
    assert (caught.value.name, caught.value.by) == ("c", "ops@here")


def test_two_who_ask_at_the_same_instant_do_not_mix(queue: Callable[..., list[Actor]]) -> None:
    actors = queue(*"abc")
    until(actors[0].election.leader, "a's term is written")
    asked = {name: Switchover(actors[0].election, name) for name in "bc"}
    ends = {name: each.outcome.exception(WITHIN) for name, each in asked.items()}
    refusals = (zkelect.SwitchoverInProgress, zkelect.SwitchoverFailed, zkelect.NobodyLeads)
    assert all(end is None or isinstance(end, refusals) for end in ends.values())
    done = [name for name, end in ends.items() if end is None]
    assert done
    until(lambda: actors[0].election.leader() is not None, "somebody leads")
    assert actors[0].election.leader().name in done  # type: ignore[union-attr]  # looked above


# --- how it does not come about ----------------------------------------------------------------


def test_who_does_not_step_back_in_time_is_named_and_the_leader_goes_on(
    stuck: Callable[..., Stuck], page: Callable[[], Page]
) -> None:
    began = boottime()
    case = stuck(timeout=1.0)
    assert case.deaf in case.switchover.reason()
    assert boottime() - began >= 1.0
    assert page()["state"] == "withdrawn"
    (term,) = case.leader.diary.all("elected")
    assert term.leadership.check() == term.leadership.token
    assert case.leader.diary.all("deposed") == []


def test_a_target_that_goes_midway_ends_it(stuck: Callable[..., Stuck]) -> None:
    case = stuck()
    case.target.election.stop()
    assert case.switchover.reason() == "'c' has left the queue"
    assert case.leader.diary.all("deposed") == []


def test_a_leader_that_closes_midway_leaves_it_to_whoever_is_first(
    stuck: Callable[..., Stuck], operator: Operator, path: str, page: Callable[[], Page]
) -> None:
    case = stuck()
    operator.delete(path, operator.nodes(path)[-1])  # the target stands anew, and is not it
    case.leader.session.close()
    operator.delete(path, case.deaf)
    case.target.diary.wait("elected")
    assert case.switchover.reason()
    assert page()["state"] == "withdrawn"


def test_a_leader_that_is_killed_midway_leaves_it_to_whoever_is_first(
    spawn: Callable[..., Process],
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    page: Callable[[], Page],
) -> None:
    leader = spawn("a")
    before = zkelect.Token.parse(leader.wait("elected")["token"])
    deaf = operator.stand(path, uuid=DEAF)
    b = cast("b").queue()
    switchover = Switchover(b.election, "b", timeout=WITHIN)
    until(lambda: page().get("state") == "driven", "the leader drives it")
    leader.signal(signal.SIGKILL)
    operator.delete(path, deaf)
    elected = b.diary.wait("elected").leadership
    assert elected.token > before
    assert switchover.outcome.result(WITHIN).token == elected.token


def test_it_is_withdrawn_when_whoever_asked_stops_waiting(
    stuck: Callable[..., Stuck], page: Callable[[], Page]
) -> None:
    stop = threading.Event()
    case = stuck(stop=stop, by="ops@here")
    stop.set()
    assert case.switchover.reason() == "ops@here stopped waiting"
    assert page()["state"] == "withdrawn"
    assert case.leader.diary.all("deposed") == []


def test_ctrl_c_withdraws_it(blocked: tuple[Actor, Actor, str], page: Callable[[], Page]) -> None:
    leader, target, _ = blocked

    def interrupt() -> None:
        until(lambda: page().get("state") == "driven", "the leader drives it")
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        target.election.switchover("c", by="ops@here")
    interrupter.join(WITHIN)
    assert page()["state"] == "withdrawn"
    assert page()["reason"] == "ops@here stopped waiting (KeyboardInterrupt)"
    assert leader.diary.all("deposed") == []


def test_a_task_that_is_cancelled_withdraws_it(
    blocked: tuple[Actor, Actor, str],
    zookeeper: LocalEnsemble,
    path: str,
    page: Callable[[], Page],
) -> None:
    async def main() -> None:
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            task = asyncio.create_task(zkelect.AsyncElection(session, path).switchover("c"))
            await asyncio.to_thread(until, lambda: page().get("state") == "driven", "it is driven")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until, lambda: page()["state"] == "withdrawn", "it is off")

    asyncio.run(asyncio.wait_for(main(), 2 * WITHIN))
    assert blocked[0].diary.all("deposed") == []


def test_a_body_that_does_not_return_keeps_the_target_waiting_for_its_lease_only(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign]
) -> None:
    leading = campaign(cast("a").election)
    leadership = leading.leadership()
    b = cast("b").queue()
    assert b.election.switchover("b").name == "b"
    assert leadership.remaining() == 0.0
    assert not leading.left.done()
