"""Priorities: of those who wait, the one with the largest leads next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from election.waiting import until

import zkelect
from zkelect.core import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Operator

KAZOOS = "00000000000040008000000000000000"


def look(actor: Actor) -> None:
    """Let the slow re-read come now: it would within five session timeouts."""
    driver = actor.election._candidacy.driver
    with actor.session.lock:
        driver.feed(ev.RollDue(stamp=driver.machine.state.stamp))


def order(actor: Actor) -> list[str]:
    return [candidate.name for candidate in actor.election.candidates()]


def test_h49_the_highest_leads_next_and_tokens_rise(cast: Callable[..., Actor]) -> None:
    """The re-reads come by themselves."""
    a, b = cast("a", priority=1), cast("b", priority=2)
    first = a.lead()
    b.queue()
    c = cast("c", priority=4095).queue()
    until(lambda: order(a) == ["a", "c", "b"], "b steps back for c")
    assert first.check() == first.token
    a.election.stop()
    second = c.diary.wait("elected").leadership
    c.election.stop()
    third = b.diary.wait("elected").leadership
    assert first.token < second.token < third.token


def test_a_fail_over_does_not_wait_for_priorities(cast: Callable[..., Actor]) -> None:
    a = cast("a")
    a.lead()
    b = cast("b").queue()
    c = cast("c", priority=7).queue()
    a.session.close()
    leadership = b.diary.wait("elected").leadership
    look(b)
    look(c)
    until(lambda: order(b) == ["b", "c"], "a is gone")
    assert leadership.check() == leadership.token
    assert b.diary.all("deposed") == []


def test_whoever_becomes_the_heir_steps_back_at_once_when_it_knows_of_a_higher_one(
    cast: Callable[..., Actor],
) -> None:
    a = cast("a")
    a.lead()
    others = [cast(name).queue() for name in "bcd"]
    cast("z", priority=7).queue()
    for actor in reversed(others):
        look(actor)
    until(lambda: order(a)[1] == "z", "z is next")
    assert order(a) == ["a", "z", "b", "c", "d"]


def test_h49_with_a_peer_of_another_library_they_are_not_applied_and_that_is_told_once(
    cast: Callable[..., Actor], operator: Operator, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither kazoo's Lock nor its Election gives a place away once it has it."""
    a = cast("a")
    a.lead()
    b = cast("b").queue()
    peer = operator.stand(path, uuid=KAZOOS)
    c = cast("c", priority=7).queue()
    for _ in range(2):
        look(c)
        look(b)
    for actor in (a, b, c):  # answered on the same connection behind the re-reads
        assert order(actor) == ["a", "b", "peer", "c"]
    told = [
        r.getMessage() for r in caplog.records if "priorities are not applied" in r.msg % r.args
    ]
    assert len(told) == 1
    operator.delete(path, peer)
    look(b)
    until(lambda: order(a) == ["a", "c", "b"], "b steps back for c")


@pytest.mark.parametrize("priority", [-1, 4096, 1.5, True, "1", None])
def test_what_is_no_priority_is_refused(cast: Callable[..., Actor], priority: Any) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="0 to 4095"):
        cast("a", priority=priority)


def test_it_survives_the_session(cast: Callable[..., Actor]) -> None:
    """The candidate of the next session has another uuid, and the same priority."""
    a = cast("a")
    a.lead()
    b = cast("b", priority=5).queue()
    before = b.election._candidacy.node
    zkelect.testing.expire(b.session)
    until(lambda: b.election._candidacy.node not in (None, before), "b stands anew")
    node = b.election._candidacy.driver.machine.state.node
    assert node is not None
    assert node.priority == 5
