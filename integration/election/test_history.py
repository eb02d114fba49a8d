"""What operators do is in the history, once, with who and why, together with what it changed."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from election.waiting import WITHIN, until
from kazoo.security import make_acl

import zkelect
from zkelect import stores
from zkelect.session import acts, pages
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Operator

    from zkelect.testing import LocalEnsemble

T = 2.0
ADA = "ada@host-a"
WHY = "the disk is being changed"

Event = tuple[str, ...]


@pytest.fixture
def console(zookeeper: LocalEnsemble, path: str) -> Iterator[zkelect.Election]:
    """Where an operator sits: a session of its own, and nobody who stands."""
    with zkelect.connect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
        yield zkelect.Election(session, path, name="console")


def told(election: zkelect.Election) -> list[Event]:
    """Return the history in short."""
    return [
        (str(event.kind), event.by, event.why, event.target)
        if isinstance(event, zkelect.Act)
        else (event.name, str(event.reason))
        for event in election.history()
    ]


def marked(path: str, token: zkelect.Token) -> stores.Mark:
    """Return the mark of a store that has seen a later generation."""
    later = evolve(token, generation=token.generation + 4)
    return stores.Mark(token=later, election=path, holder="host-z")


def test_acts_and_terms_are_in_the_history_in_the_order_of_their_commits(
    cast: Callable[..., Actor], console: zkelect.Election, operator: Operator, path: str
) -> None:
    a, b = cast("A"), cast("B")
    term = a.lead()
    b.queue()
    assert console.history() == ()
    console.pause(WHY, by=ADA)
    console.resume("it is changed", by="bob@host-b")
    console.switchover("B", why="a new kernel", by=ADA)
    until(lambda: operator.terms(path), "the end of A's term is written")
    for each in (a, b):
        each.election.stop()
    mark = marked(path, term.token)
    stores.adopt(console, mark, why="restored", by=ADA)
    assert told(console) == [
        ("pause", ADA, WHY, ""),
        ("resume", "bob@host-b", "it is changed", ""),
        ("switchover", ADA, "a new kernel", "B"),
        ("A", "switched-over"),
        ("B", "resigned"),
        ("adopt", ADA, "restored", str(mark.token)),
    ]
    ats = [event.at for event in console.history() if isinstance(event, zkelect.Act)]
    assert ats == sorted(ats)
    assert all(at > term_began(console) for at in ats)


def term_began(election: zkelect.Election) -> float:
    """Return when the first term began, by the same clock as the acts."""
    return min(event.since for event in election.history() if isinstance(event, zkelect.Term))


def test_what_changes_nothing_is_no_act(
    cast: Callable[..., Actor], console: zkelect.Election
) -> None:
    cast("A").lead()
    assert console.resume() is None
    console.pause(WHY, by=ADA)
    console.pause("once more", by=ADA)
    with pytest.raises(zkelect.ElectionPaused):
        console.pause(by="bob@host-b")
    with pytest.raises(zkelect.NotStanding):
        console.switchover("B", by=ADA)
    assert told(console) == [("pause", ADA, WHY, "")]


def test_an_election_that_nobody_has_stood_for_has_no_history(console: zkelect.Election) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="ever stood for"):
        console.history()


@pytest.mark.parametrize("act", ["pause", "resume", "switchover", "adopt"])
def test_an_act_whose_answer_is_lost_is_written_once(
    act: str,
    cast: Callable[..., Actor],
    console: zkelect.Election,
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    a, b = cast("A"), cast("B")
    term = a.lead()
    b.queue()
    if act == "resume":
        console.pause(WHY, by=ADA)
    if act == "adopt":
        for each in (a, b):
            each.election.stop()
    with (
        FaultProxy(zookeeper.hosts) as proxy,
        zkelect.connect(proxy.hosts, session_timeout=T, tick_time=0.2) as session,
    ):
        rule = proxy.drop_reply("multi", path=f"{path}.zkelect/history")
        election = zkelect.Election(session, path)
        do: dict[str, Callable[[], object]] = {
            "pause": lambda: election.pause(WHY),
            "resume": election.resume,
            "switchover": lambda: election.switchover("B"),
            "adopt": lambda: stores.adopt(election, marked(path, term.token)),
        }
        do[act]()
        assert rule.fired
    kinds = [event.kind for event in console.history() if isinstance(event, zkelect.Act)]
    assert kinds == (["pause", "resume"] if act == "resume" else [act])


def test_a_term_that_ends_meanwhile_is_not_written_over(
    cast: Callable[..., Actor],
    console: zkelect.Election,
    monkeypatch: pytest.MonkeyPatch,
    operator: Operator,
    path: str,
) -> None:
    """The history is written at the version that was read, and read again after a conflict."""
    a = cast("A")
    a.lead()
    read = pages.read_page

    def overtaken(*args: Any) -> Any:
        page = read(*args)
        if not operator.terms(path):
            a.election.stop()
        return page

    monkeypatch.setattr(acts, "read_page", overtaken)
    console.pause(WHY, by=ADA)
    assert told(console) == [("A", "resigned"), ("pause", ADA, WHY, "")]


def test_a_history_that_never_stands_still_is_told(
    cast: Callable[..., Actor],
    console: zkelect.Election,
    monkeypatch: pytest.MonkeyPatch,
    operator: Operator,
    path: str,
) -> None:
    cast("A").lead()
    read = pages.read_page

    def overtaken(*args: Any) -> Any:
        page = read(*args)
        operator.kazoo.set(f"{path}.zkelect/history", b"[]")
        return page

    monkeypatch.setattr(acts, "read_page", overtaken)
    with pytest.raises(zkelect.RequestFailed, match=r"history.*changed 5 times meanwhile"):
        console.pause(WHY, by=ADA)
    assert console.paused() is None


def test_a_history_that_was_deleted_begins_anew(
    cast: Callable[..., Actor], console: zkelect.Election, operator: Operator, path: str
) -> None:
    cast("A").lead()
    operator.kazoo.delete(f"{path}.zkelect/history")
    assert console.history() == ()
    console.pause(WHY, by=ADA)
    assert told(console) == [("pause", ADA, WHY, "")]


def test_without_the_right_to_write_the_history_nothing_is_done(
    cast: Callable[..., Actor], console: zkelect.Election, operator: Operator, path: str
) -> None:
    cast("A").lead()
    history = f"{path}.zkelect/history"
    operator.kazoo.set_acls(history, [make_acl("world", "anyone", read=True, admin=True)])
    with pytest.raises(zkelect.PermissionDenied, match="history"):
        console.pause(WHY, by=ADA)
    assert console.paused() is None


def test_the_history_of_before_is_read_and_carried_over(
    cast: Callable[..., Actor], console: zkelect.Election, operator: Operator, path: str
) -> None:
    a = cast("A")
    a.lead()
    a.election.stop()
    until(lambda: operator.terms(path), "the end of the term is written")
    old = operator.terms(path)
    console.pause(WHY, by=ADA)
    assert json.loads(operator.kazoo.get(f"{path}.zkelect/history")[0])[:-1] == old


def test_on_asyncio_it_is_the_same(
    zookeeper: LocalEnsemble, path: str, cast: Callable[..., Actor]
) -> None:
    cast("A").lead()

    async def main() -> tuple[zkelect.Term | zkelect.Act, ...]:
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            election = zkelect.AsyncElection(session, path, name="console")
            await election.pause(WHY, by=ADA)
            await election.resume("done", by=ADA)
            return await election.history()

    history = asyncio.run(asyncio.wait_for(main(), 3 * WITHIN))
    assert [str(event) for event in history] == [
        f"pause by '{ADA}': {WHY}",
        f"resume by '{ADA}': done",
    ]
