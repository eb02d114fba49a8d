"""Pausing: the leader stays, nobody follows it, and whoever waits leads at once afterwards."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from election.diary import Diary
from election.waiting import WITHIN, boottime, until

import zkelect
from zkelect.testing import FaultProxy, expire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Campaign, Operator

    from zkelect.testing import LocalEnsemble

T = 2.0
ADA = "ada@host-a"
WHY = "the disk is being changed"


@pytest.fixture
def desk(zookeeper: LocalEnsemble) -> Iterator[zkelect.Session]:
    """Where an operator sits: a session of its own, and nobody who stands."""
    with zkelect.connect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
        yield session


@pytest.fixture
def console(desk: zkelect.Session, path: str) -> zkelect.Election:
    return zkelect.Election(desk, path, name="console")


class Kept:
    """What candidates have said of pauses that keep them from leading."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def count(self, name: str) -> int:
        """Return how often a candidate was the first and did not lead."""
        told = f"{name} is first and may not lead: paused by '{ADA}'"
        return sum(told in message for message in self._caplog.messages)

    def wait(self, actor: Actor | Candidate, times: int = 1, *, terms: int = 0) -> None:
        """Wait until that has been said so often; whoever is granted instead does not say it.

        :param terms: that it was granted before the pause.
        """

        def granted() -> bool:
            return len(actor.diary.all("granted")) > terms

        until(lambda: self.count(actor.name) >= times or granted(), f"{actor.name} is kept")
        assert not granted(), f"{actor.name} leads while paused"


@pytest.fixture
def kept(caplog: pytest.LogCaptureFixture) -> Kept:
    caplog.set_level(logging.INFO, "zkelect")
    return Kept(caplog)


# --- while it is paused ----------------------------------------------------------------------


def test_the_leader_stays_and_nobody_follows_it_until_the_election_is_resumed(
    cast: Callable[..., Actor],
    console: zkelect.Election,
    kept: Kept,
    caplog: pytest.LogCaptureFixture,
    measured: Callable[[str, float, float], None],
) -> None:
    a, b, c = cast("A", address="a:1"), cast("B"), cast("C")
    term = a.lead()
    b.queue()
    assert console.paused() is None
    leader = console.pause(WHY, by=ADA)
    assert leader is not None
    assert (leader.name, leader.address, leader.token) == ("A", "a:1", term.token)
    pause = console.paused()
    assert pause is not None
    assert (pause.by, pause.why) == (ADA, WHY)
    proven = term.deadline
    until(lambda: term.deadline > proven + T / 4, "A's lease is renewed as before")
    assert not a.diary.all("deposed")
    a.election.stop()
    kept.wait(b)
    c.queue()
    assert console.leader() is None
    assert [each.name for each in console.candidates()] == ["B", "C"]
    began = boottime()
    assert console.resume() == pause
    elected = b.diary.wait("granted")
    measured("from the word of the operator to the grant", elected.at - began, 0.05)
    assert elected.leadership.token > term.token
    assert console.paused() is None
    assert f"{b.election.path}: the pause is over" in caplog.messages
    assert not c.diary.all("granted")


def test_who_stands_alone_waits_and_is_told_of_whom_and_why(
    cast: Callable[..., Actor], console: zkelect.Election, campaign: Callable[..., Campaign]
) -> None:
    cast("A").lead()
    a = cast("B")
    console.pause(WHY, by=ADA)
    told = rf"not elected within 0\.5 s \(1 candidate ahead\); the election is paused by '{ADA}'"
    with pytest.raises(zkelect.NotElected, match=f"{told} since .* UTC: {WHY}") as late:
        a.election.run(lambda _: None, timeout=0.5)
    assert late.value.pause == console.paused()
    console.resume()
    waiting = campaign(a.election, 0.5)
    with pytest.raises(zkelect.NotElected, match=r"ahead\)$") as late:
        waiting.leadership()
    assert late.value.pause is None


def test_a_pause_made_while_the_link_is_down_is_heeded(
    cast: Callable[..., Actor], console: zkelect.Election, kept: Kept
) -> None:
    a, b = cast("A"), cast("B", session_timeout=4.0)
    a.lead()
    b.queue()
    b.forwarder.refuse()
    b.forwarder.cut()
    console.pause(WHY, by=ADA)
    a.election.stop()
    b.forwarder.heal()
    b.forwarder.accept()
    kept.wait(b)
    console.resume()
    b.diary.wait("elected")


def test_a_candidate_that_makes_a_deleted_record_anew_makes_it_paused(
    cast: Callable[..., Actor], console: zkelect.Election, kept: Kept, operator: Operator, path: str
) -> None:
    a, b = cast("A"), cast("B")
    a.lead()
    b.queue()
    console.pause(WHY, by=ADA)
    pause = console.paused()
    a.election.stop()
    kept.wait(b)
    operator.kazoo.delete(f"{path}.zkelect", recursive=True)
    kept.wait(b, 2)
    assert console.paused() == pause
    console.resume()
    b.diary.wait("elected")


def test_an_adopted_election_stays_paused(
    cast: Callable[..., Actor], console: zkelect.Election, kept: Kept
) -> None:
    a, b = cast("A"), cast("B")
    term = a.lead()
    b.queue()
    console.pause(WHY, by=ADA)
    pause = console.paused()
    a.election.stop()
    kept.wait(b)
    higher = zkelect.Token.parse(f"{term.token.generation + 4:08x}{str(term.token)[8:]}")
    assert console.adopt(higher) == term.token.generation + 5
    kept.wait(b, 2)
    assert console.paused() == pause
    console.resume()
    assert b.diary.wait("elected").leadership.token > higher


# --- in the order of the commits ---------------------------------------------------------------


def test_who_hears_of_the_leaders_end_has_heard_of_the_pause_before(
    cast: Callable[..., Actor],
    console: zkelect.Election,
    kept: Kept,
    zookeeper: LocalEnsemble,
    times: Callable[[int, int], int],
) -> None:
    """The pause on one session, then the end of another: watches come in their order."""
    leader, heir = cast("A"), cast("B")
    leader.lead()
    heir.queue()
    said = {"A": 0, "B": 0}
    for _ in range(times(5, 50)):
        terms = len(heir.diary.all("elected"))
        console.pause(WHY, by=ADA)
        expire(leader.session, hosts=zookeeper.hosts)
        said[heir.name] += 1
        kept.wait(heir, said[heir.name], terms=terms)
        console.resume()
        heir.diary.wait("elected", terms + 1)
        until(lambda: len(console.candidates()) == 2, "the old leader stands again")
        leader, heir = heir, leader


class Candidate:
    """One who stands on a session that others use, too, in an election of its own."""

    def __init__(self, session: zkelect.Session, path: str, name: str) -> None:
        self.name = name
        self.diary = Diary()
        self.election = zkelect.Election(session, path, name=name, prepare=self.diary.granted)
        self.election.start()

    def has_a_place(self) -> bool:
        return self.election.phase in (zkelect.Phase.WAITING, zkelect.Phase.LEADING)


def test_who_walks_down_the_queue_passes_over_no_pause(
    cast: Callable[..., Actor],
    desk: zkelect.Session,
    kept: Kept,
    operator: Operator,
    path: str,
    times: Callable[[int, int], int],
) -> None:
    """Heir, pause, leader: three commits in one breath, while the third looks who is left."""
    sessions = [cast(name).session for name in "ABC"]
    for number in range(times(10, 50)):
        here = f"{path}/{number}"
        standing = []
        for name, session in zip("ABC", sessions, strict=True):
            standing.append(Candidate(session, here, f"{name}{number}"))
            until(standing[-1].has_a_place, f"{name} has a place")
        leader, heir, _third = operator.nodes(here)
        data, _stat = operator.kazoo.get(f"{here}.zkelect")
        paused = json.dumps({**json.loads(data), "paused": {"by": ADA}}).encode()
        in_one_breath = [
            operator.kazoo.delete_async(f"{here}/{heir}"),
            operator.kazoo.set_async(f"{here}.zkelect", paused),
            operator.kazoo.delete_async(f"{here}/{leader}"),
        ]
        for done in in_one_breath:
            done.get(timeout=WITHIN)
        kept.wait(standing[2])
        zkelect.Election(desk, here).resume()
        standing[2].diary.wait("granted")
        for each in standing:
            each.election.stop()


# --- the operator's side -----------------------------------------------------------------------


def test_to_repeat_ones_own_pause_changes_nothing_and_anothers_is_refused(
    cast: Callable[..., Actor], console: zkelect.Election
) -> None:
    term = cast("A").lead()
    console.pause(WHY, by=ADA)
    pause = console.paused()
    again = console.pause("something else", by=ADA)
    assert again is not None
    assert again.token == term.token
    assert console.paused() == pause
    with pytest.raises(zkelect.ElectionPaused, match=f"paused by '{ADA}' since .*: {WHY}") as who:
        console.pause(by="bob@host-b")
    assert who.value.pause == console.paused() == pause
    assert console.resume() == pause
    assert console.resume() is None


def test_without_a_word_it_is_the_user_of_this_process(
    cast: Callable[..., Actor], console: zkelect.Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    cast("A").lead()
    console.pause()
    pause = console.paused()
    assert pause is not None
    assert pause.by.startswith("grace@")
    console.resume()


def test_a_candidate_of_another_library_would_not_heed_a_pause(
    cast: Callable[..., Actor], console: zkelect.Election, operator: Operator, path: str
) -> None:
    cast("A").lead()
    node = operator.stand(path)
    with pytest.raises(zkelect.ForeignCandidate, match=r"cannot pause: .* another library") as who:
        console.pause(WHY)
    assert who.value.node == node
    assert console.paused() is None


def test_an_election_that_nobody_has_stood_for_cannot_be_paused(console: zkelect.Election) -> None:
    for act in (console.pause, console.resume, console.paused):
        with pytest.raises(zkelect.InvalidArgument, match="ever stood for"):
            act()


def test_what_is_written_for_people_has_an_end(console: zkelect.Election) -> None:
    with pytest.raises(zkelect.InvalidArgument, match=r"why=.*at most 8192 bytes"):
        console.pause("x" * 8193)
    with pytest.raises(zkelect.InvalidArgument, match=r"by=.*at most 8192 bytes"):
        console.pause(by="x" * 8193)


@pytest.mark.parametrize("act", ["pause", "resume"])
def test_a_word_whose_answer_is_lost_is_written_once(
    act: str,
    cast: Callable[..., Actor],
    console: zkelect.Election,
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
) -> None:
    term = cast("A").lead()
    if act == "resume":
        console.pause(WHY, by=ADA)
    before = operator.kazoo.get(f"{path}.zkelect")[1].version
    with (
        FaultProxy(zookeeper.hosts) as proxy,
        zkelect.connect(proxy.hosts, session_timeout=T, tick_time=0.2) as session,
    ):
        rule = proxy.drop_reply("multi", path=f"{path}.zkelect")
        election = zkelect.Election(session, path)
        if act == "pause":
            leader = election.pause(WHY, by=ADA)
            assert leader is not None
            assert leader.token == term.token
        else:
            assert election.resume() is not None
        assert rule.fired
    assert operator.kazoo.get(f"{path}.zkelect")[1].version == before + 1
    assert (console.paused() is None) == (act == "resume")


# --- asyncio -----------------------------------------------------------------------------------


def test_on_asyncio_it_is_the_same(
    zookeeper: LocalEnsemble, path: str, cast: Callable[..., Actor], kept: Kept
) -> None:
    a, b = cast("A"), cast("B")
    term = a.lead()
    b.queue()

    async def main() -> None:
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            election: Any = zkelect.AsyncElection(session, path, name="console")
            assert await election.paused() is None
            leader = await election.pause(WHY, by=ADA)
            assert leader.token == term.token
            with pytest.raises(zkelect.NotElected, match=f"paused by '{ADA}'"):
                async with election.campaign(timeout=0.5):
                    pass
            await asyncio.to_thread(a.election.stop)
            await asyncio.to_thread(kept.wait, b)
            pause = await election.paused()
            assert pause == await election.resume()
            await asyncio.to_thread(b.diary.wait, "elected")

    asyncio.run(asyncio.wait_for(main(), 3 * WITHIN))
