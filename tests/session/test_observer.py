"""Who leads, seen from outside: what is told, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from session.troupe import PATH, T, Troupe

import zkelect
from zkelect.core.record import TermPhase
from zkelect.core.znodes import KAZOO
from zkelect.session.observer import Observer
from zkelect.testing import expire
from zkelect.testing.fake_machine import Move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect import Candidate
    from zkelect.session.session import Session
    from zkelect.testing import FakeEnsemble


class Audience:
    """An observer, and what it has told."""

    def __init__(self, troupe: Troupe) -> None:
        self.session: Session = troupe.connect()
        self.requests = troupe.asked[self.session]
        self.told: list[str | None] = []
        self._calls: list[Callable[[Candidate | None], None]] = []
        self.observer = Observer(self.session, PATH, KAZOO, self._hear)

    def on_change(self, call: Callable[[Candidate | None], None]) -> None:
        self._calls.append(call)

    def _hear(self) -> None:
        leader = self.observer.leader
        for call in self._calls:
            call(leader)
        self.told.append(None if leader is None else leader.name)


@pytest.fixture
def audience(troupe: Troupe, fake: FakeEnsemble) -> Iterator[Callable[[], Audience]]:
    made: list[Audience] = []

    def make() -> Audience:
        made.append(Audience(troupe))
        fake.settle()
        made[-1].observer.__enter__()
        fake.settle()
        return made[-1]

    yield make
    for each in made:
        each.observer.__exit__()


def test_it_tells_who_leads_now_and_after_each_change(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience]
) -> None:
    a, b = troupe.lead("A", address="10.0.0.1:80"), troupe.queue("B")
    seen = audience()
    assert seen.told == ["A"]
    leader = seen.observer.leader
    assert leader is not None
    assert (leader.address, leader.token) == ("10.0.0.1:80", a.terms[0].token)
    assert leader.phase is TermPhase.SERVING
    a.election.stop()
    troupe.until(lambda: b.terms, "B leads")
    fake.settle()
    assert seen.told == ["A", None, "B"]


def test_nobody_leads_is_said_when_the_leader_dies(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience]
) -> None:
    a = troupe.lead("A")
    seen = audience()
    expire(a.session)
    a.election.stop()
    fake.settle()
    assert seen.told == ["A", None]


def test_a_leader_that_prepares_is_told_apart(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience]
) -> None:
    troupe.lead("Z").election.stop()
    seen = audience()
    phases: list[TermPhase | None] = []

    seen.on_change(lambda leader: phases.append(None if leader is None else leader.phase))
    troupe.lead("A", prepare=lambda _: None)
    fake.settle()
    assert phases == [TermPhase.PREPARING, TermPhase.SERVING]


def test_one_change_costs_each_observer_two_requests(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience]
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    crowd = [audience() for _ in range(20)]
    before = [len(each.requests) for each in crowd]
    a.election.stop()
    troupe.until(lambda: b.terms, "B leads")
    fake.settle()
    assert all(each.told[-1] == "B" for each in crowd)
    costs = [len(each.requests) - old for each, old in zip(crowd, before, strict=True)]
    assert max(costs) <= 2


def test_who_joins_and_leaves_costs_nothing(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience]
) -> None:
    troupe.lead("A")
    seen = audience()
    before = len(seen.requests)
    for name in "BCD":
        troupe.queue(name).election.stop()
    fake.settle()
    assert (len(seen.requests), seen.told) == (before, ["A"])


def test_a_swallowed_event_is_made_up_for(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience]
) -> None:
    """pulsar #23125, for observers."""
    a, b = troupe.lead("A"), troupe.queue("B")
    seen = audience()
    fake.lose_event(seen.session)
    fake.lose_event(seen.session)
    a.election.stop()
    troupe.until(lambda: b.terms, "B leads")
    fake.settle()
    assert seen.told == ["A"]
    fake.advance(6 * T)
    assert seen.told[-1] == "B"


def test_after_a_lost_link_it_looks_again(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience]
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    seen = audience()
    assert seen.observer.fresh
    fake.cut(seen.session)
    troupe.until(lambda: not seen.observer.fresh, "the link is known to be down")
    a.election.stop()
    troupe.until(lambda: b.terms, "B leads")
    assert seen.told == ["A"]
    fake.heal(seen.session)
    troupe.until(lambda: seen.told[-1] == "B", "the observer sees B")


@pytest.mark.parametrize("data", [b"{}", None], ids=["no term", "the same term"])
def test_an_answer_about_an_earlier_leader_tells_nothing(
    troupe: Troupe, fake: FakeEnsemble, audience: Callable[[], Audience], data: bytes | None
) -> None:
    """The term and the leader's znode are changed by hand, and both are asked for at once."""
    a = troupe.lead("A")
    seen = audience()
    term, node = f"{PATH}.zkelect/term", f"{PATH}/{a.terms[0].node}"
    znode = fake.znode(term)
    assert znode is not None
    fake.hold(seen.session, Move.ANSWER)
    fake.put(term, znode.data if data is None else data)
    fake.put(node, b"by hand")
    fake.settle()
    fake.release(seen.session)
    fake.settle()
    assert seen.told == (["A"] if data is None else ["A", None])
    assert seen.observer.error is None


def test_nobody_has_ever_stood(audience: Callable[[], Audience]) -> None:
    seen = audience()
    assert isinstance(seen.observer.error, zkelect.InvalidArgument)
